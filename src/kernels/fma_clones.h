#pragma once

// Before a function: it is compiled with and without the processor's fused multiply-add, and the
// loader chooses. Without it each std::fma is a call. The loader chooses before the runtime of the
// thread sanitizer is there, which then ends the process: its builds have one version.
#if defined(__SANITIZE_THREAD__)
#define SKEIN_FMA_CLONES
#else
#define SKEIN_FMA_CLONES [[gnu::target_clones("fma", "default")]]
#endif
