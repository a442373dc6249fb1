#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "engine/handover/decode_listener.h"

namespace skein {

// One prefill instance's connection to a DecodeListener. It runs on the listener's thread, but the
// engine's thread delivers outputs.
class DecodeSession : public std::enable_shared_from_this<DecodeSession> {
 public:
  // `owner` outlives the session's use.
  DecodeSession(DecodeListener* owner, boost::asio::ip::tcp::socket socket);

  void Start();
  void SayAlive();
  void Close(const std::string& reason) { channel_->Close(reason); }

 private:
  struct Running {
    RequestId id = 0;
    int32_t num_live = 1;
  };

  void OnReceived(WireBytes bytes);
  Status Handle(HandoverMessage message, std::shared_ptr<const WireBytes> bytes, bool* reads_on);
  Status HandleHello(const Hello& hello);
  bool ImportBlocks(const BlockRun& run, std::shared_ptr<const WireBytes> bytes);
  Status StartRequest(StartCall start);
  void CancelRequest(const CancelCall& cancel);
  void OnOutput(uint64_t call, RequestOutput output);
  void OnClosed(const std::string& reason);

  DecodeListener* const owner_;
  const std::shared_ptr<FrameChannel> channel_;
  std::unordered_map<uint64_t, Running> calls_;
  bool greeted_ = false;
  bool closed_ = false;
};

}  // namespace skein
