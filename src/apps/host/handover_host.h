#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine_loop.h"
#include "engine/handover/decode_listener.h"
#include "engine/handover/handover_engine.h"
#include "runtime/cpu_runtime.h"
#include "sched/config.h"

namespace skein {

// The address that decides a process's side of a hand-over. At most one is set, as HOST:PORT.
struct HandoverOptions {
  std::string decode_peer;  // a prefill instance sets the address of its decode instance
  std::string listen;       // a decode instance sets the address at which it accepts prompts
  bool any() const { return !decode_peer.empty() || !listen.empty(); }
};

// The hand-over (disaggregation) of a model's engine. Destroyed after the engine was shut down, and
// before the engine is destroyed.
class HandoverHost {
 public:
  // The engine and its parts, which outlive the host.
  struct Parts {
    CpuRuntime* runtime = nullptr;
    EngineLoop* engine = nullptr;
    const Clock* clock = nullptr;
    std::string model_dir;
    std::vector<std::string> adapter_dirs;
  };

  // Checks that an engine with this configuration can hand over prompts or accept them. Fails with
  // kInvalidArgument or kUnsupported; the error names the option.
  static Status Check(const SchedulerConfig& scheduler, const CpuRuntime& runtime, bool records);
  // REQUIRES: options.any() is true and Check is ok. A decode instance listens from now on.
  static Result<std::unique_ptr<HandoverHost>> Make(const HandoverOptions& options,
                                                    const Parts& parts);

  // The engine for the server of a prefill instance; null for a decode instance.
  Engine* engine() { return prefill_ ? &*prefill_ : nullptr; }
  // Called before the engine is shut down.
  void Stop();

 private:
  std::optional<HandoverEngine> prefill_;
  std::optional<DecodeListener> decode_;
};

// Names everything on which the bits of a hand-over depend: the files of the model and of its
// adapters (by length, first and last bytes), the types and the instruction class. Fails if a file
// cannot be read.
Result<std::string> HandoverModelName(const CpuRuntime& runtime, const std::string& model_dir,
                                      const std::vector<std::string>& adapter_dirs);

}  // namespace skein
