#include "apps/host/handover_host.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/hash.h"

namespace skein {
namespace {

constexpr int64_t kHashedEndBytes = 1 << 20;

// Adds the length, the first and the last bytes of a file to `words`, which are hashed.
Status AddFile(const std::filesystem::path& path, std::vector<uint64_t>* words) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return {StatusCode::kNotFound, "cannot read " + path.string()};
  words->push_back(static_cast<uint64_t>(size));
  const int64_t count = std::min(size, kHashedEndBytes);
  std::vector<char> bytes((count + 7) / 8 * 8);
  for (const int64_t begin : {int64_t{0}, size - count}) {
    file.seekg(begin);
    file.read(bytes.data(), count);
    if (!file) return {StatusCode::kNotFound, "cannot read " + path.string()};
    const size_t old = words->size();
    words->resize(old + bytes.size() / 8);
    std::memcpy(words->data() + old, bytes.data(), bytes.size());
  }
  return Status::Ok();
}

Status AddModel(const std::string& dir, std::vector<uint64_t>* words) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_regular_file(dir)) {
    files.emplace_back(dir);
  } else {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
      const std::string suffix = entry.path().extension().string();
      const std::string name = entry.path().filename().string();
      if (suffix == ".safetensors" || suffix == ".gguf" || name == "config.json" ||
          name == "adapter_config.json") {
        files.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(files, {}, [](const auto& path) { return path.filename(); });
  for (const std::filesystem::path& file : files) SKEIN_RETURN_IF_ERROR(AddFile(file, words));
  return Status::Ok();
}

}  // namespace

Result<std::string> HandoverModelName(const CpuRuntime& runtime, const std::string& model_dir,
                                      const std::vector<std::string>& adapter_dirs) {
  std::vector<uint64_t> words;
  SKEIN_RETURN_IF_ERROR(AddModel(model_dir, &words));
  for (const std::string& dir : adapter_dirs) SKEIN_RETURN_IF_ERROR(AddModel(dir, &words));
  return fmt::format("weights {:016x}, {} adapters, {}, {}, {}, {}", HashWords(words, 0),
                     adapter_dirs.size(), NameOf(runtime.dtype()), runtime.matrix_name(),
                     NameOf(runtime.kv_dtype()), NameOf(runtime.isa()));
}

Status HandoverHost::Check(const SchedulerConfig& scheduler, const CpuRuntime& runtime,
                           bool records) {
  const auto refuse = [](StatusCode code, const std::string& why) {
    return Status(code, "--role is refused: " + why, "role");
  };
  if (runtime.config().head != Head::kLanguageModel) {
    return refuse(StatusCode::kUnsupported, "the model generates no text");
  }
  if (runtime.num_states() > 0) {
    return refuse(StatusCode::kUnsupported,
                  "the states of linear attention are not handed over, only KV blocks");
  }
  if (scheduler.kv_storage != KvStorage::kPaged || !scheduler.prefix_caching) {
    return refuse(StatusCode::kInvalidArgument,
                  "blocks come from the prefix cache and go into it; it needs --kv-storage paged "
                  "and prefix caching");
  }
  if (scheduler.policies.retention != Retention::kAll) {
    return refuse(StatusCode::kInvalidArgument,
                  "it needs --retention all, so that prompts' blocks are kept");
  }
  if (records) {
    return refuse(StatusCode::kInvalidArgument, "--record cannot replay handed-over blocks");
  }
  return Status::Ok();
}

Result<std::unique_ptr<HandoverHost>> HandoverHost::Make(const HandoverOptions& options,
                                                         const Parts& parts) {
  KvPort* const port = &parts.runtime->kv_port();
  Hello hello{.block_bytes = port->port_bytes()};
  SKEIN_ASSIGN_OR_RETURN(hello.model,
                         HandoverModelName(*parts.runtime, parts.model_dir, parts.adapter_dirs));
  auto host = std::make_unique<HandoverHost>();
  if (!options.decode_peer.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const HostPort peer,
                           ParseHostPort("--decode-peer", options.decode_peer));
    host->prefill_.emplace(parts.engine, port, parts.clock,
                           HandoverConfig{.peer = peer, .hello = hello});
    return host;
  }
  SKEIN_ASSIGN_OR_RETURN(const HostPort address,
                         ParseHostPort("--handover-listen", options.listen));
  host->decode_.emplace(parts.engine, port, hello);
  SKEIN_ASSIGN_OR_RETURN(const uint16_t bound, host->decode_->Start(address));
  spdlog::info("taking hand-overs on {}:{}", address.host, bound);
  return host;
}

void HandoverHost::Stop() {
  if (prefill_) prefill_->Stop();
  if (decode_) decode_->Stop();
}

}  // namespace skein
