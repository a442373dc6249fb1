#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "engine/handover/messages.h"
#include "engine/handover/prefix_transfer.h"
#include "engine/validate.h"
#include "harness.h"

namespace skein::fuzz {
namespace {

constexpr int32_t kBlocks = 4;
constexpr size_t kPortBytes = 8;
constexpr EngineLimits kLimits = {.vocab_size = 100,
                                  .max_model_len = 512,
                                  .max_num_seqs = 8,
                                  .max_logprobs = 5,
                                  .max_queued_requests = 16};

// Blocks of a few bytes.
class SmallPort final : public KvPort {
 public:
  size_t port_bytes() const override { return kPortBytes; }
  void ExportBlock(BlockId block, std::span<std::byte> out) const override {
    std::ranges::copy(bytes_.at(static_cast<size_t>(block)), out.begin());
  }
  void ImportBlock(BlockId block, std::span<const std::byte> in) override {
    SKEIN_CHECK(in.size() == kPortBytes);
    bytes_.at(static_cast<size_t>(block)).assign(in.begin(), in.end());
  }

 private:
  std::vector<std::vector<std::byte>> bytes_{kBlocks, std::vector<std::byte>(kPortBytes)};
};

// A prefix that was imported is exported as the same bytes.
void Import(const BlockRun& run, BlockManager* manager, SmallPort* port) {
  const int32_t num_cached = ImportPrefix(manager, port, run);
  manager->CheckIntegrity();
  SKEIN_CHECK(manager->num_referenced() == 0);
  if (run.first_block > 0 || num_cached == 0) return;
  std::vector<TokenId> prompt = run.tokens;
  prompt.push_back(0);
  const auto same = [&](const WireBytes& frame) {
    const auto read = ParseMessage(std::span(frame).subspan(kFrameHeadBytes), kPortBytes);
    SKEIN_CHECK(read.ok());
    const auto& blocks = std::get<BlockRun>(read.value());
    SKEIN_CHECK(blocks.scope == run.scope && blocks.tokens.size() <= run.tokens.size());
    SKEIN_CHECK(
        std::ranges::equal(blocks.tokens, std::span(run.tokens).first(blocks.tokens.size())));
  };
  const int32_t num_exported =
      ExportPrefix(manager, *port, run.scope, prompt, 1 << 20, 1 << 20, same);
  SKEIN_CHECK(num_exported == num_cached && manager->num_referenced() == 0);
}

}  // namespace

// Frames, one behind the other, as a decode instance reads them from a connection. An accepted
// message is written again as the same bytes. Blocks go into a small prefix cache, and leave no
// reference behind. A request is checked as at the engine's door.
void FuzzHandover(Bytes data) {
  BlockManager manager(kBlocks, /*prefix_caching=*/true);
  SmallPort port;
  auto left = std::as_bytes(data);
  while (left.size() >= kFrameHeadBytes) {
    Result<size_t> size = ParseFrameHead(left.first<kFrameHeadBytes>());
    if (!size.ok() || *size > left.size() - kFrameHeadBytes) return;
    const auto frame = left.first(kFrameHeadBytes + *size);
    left = left.subspan(frame.size());
    const auto message = ParseMessage(frame.subspan(kFrameHeadBytes), kPortBytes);
    if (!message.ok()) {
      SKEIN_CHECK(!message.status().message().empty());
      return;
    }
    SKEIN_CHECK(std::ranges::equal(FrameOf(message.value()), frame));
    if (const auto* run = std::get_if<BlockRun>(&message.value())) Import(*run, &manager, &port);
    if (const auto* start = std::get_if<StartCall>(&message.value())) {
      const Status status = ValidateRequest(kLimits, start->request);
      SKEIN_CHECK(status.ok() || !status.message().empty());
    }
  }
}

}  // namespace skein::fuzz
