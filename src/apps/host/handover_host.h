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

// The side of a hand-over that a process is: at most one is set, as HOST:PORT.
struct HandoverOptions {
  std::string decode_peer;  // a prefill instance: the address of its decode instance
  std::string listen;       // a decode instance: where it takes prompts
  bool any() const { return !decode_peer.empty() || !listen.empty(); }
};

// Disaggregation of a model's engine. Destroyed after the engine has been shut down, and before it.
class HandoverHost {
 public:
  // The engine and what it is made of, which outlive the host.
  struct Parts {
    CpuRuntime* runtime = nullptr;
    EngineLoop* engine = nullptr;
    const Clock* clock = nullptr;
    std::string model_dir;
    std::vector<std::string> adapter_dirs;
  };

  // Ok if an engine so configured can hand over, or be handed to. Fails with kInvalidArgument or
  // kUnsupported, naming the option.
  static Status Check(const SchedulerConfig& scheduler, const CpuRuntime& runtime, bool records);
  // REQUIRES: options.any(), Check is ok. A decode instance listens from here on.
  static Result<std::unique_ptr<HandoverHost>> Make(const HandoverOptions& options,
                                                    const Parts& parts);

  // The engine for the server of a prefill instance; null for a decode instance.
  Engine* engine() { return prefill_ ? &*prefill_ : nullptr; }
  // Before the engine is shut down.
  void Stop();

 private:
  std::optional<HandoverEngine> prefill_;
  std::optional<DecodeListener> decode_;
};

// Names all that a hand-over's bits depend on: the files of the model and of its adapters (by
// length, first and last bytes), types and instruction class. Fails if a file cannot be read.
Result<std::string> HandoverModelName(const CpuRuntime& runtime, const std::string& model_dir,
                                      const std::vector<std::string>& adapter_dirs);

}  // namespace skein
