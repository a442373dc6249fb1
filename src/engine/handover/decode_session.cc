#include "engine/handover/decode_session.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <new>
#include <utility>
#include <variant>

#include "engine/handover/prefix_transfer.h"

namespace skein {

DecodeSession::DecodeSession(DecodeListener* owner, boost::asio::ip::tcp::socket socket)
    : owner_(owner),
      channel_(std::make_shared<FrameChannel>(std::move(socket), DecodeListener::kMaxQueuedBytes)) {
}

void DecodeSession::Start() {
  channel_->set_events({.received = [self = shared_from_this()](
                                        WireBytes bytes) { self->OnReceived(std::move(bytes)); },
                        .closed = [self = shared_from_this()](
                                      const std::string& reason) { self->OnClosed(reason); }});
  channel_->Write(FrameOf(owner_->hello_));
  channel_->ReadNext();
}

void DecodeSession::SayAlive() { channel_->Write(FrameOf(Alive{})); }

void DecodeSession::OnReceived(WireBytes bytes) {
  // The blocks point into these bytes until they are imported.
  const auto kept = std::make_shared<const WireBytes>(std::move(bytes));
  Result<HandoverMessage> message = ParseMessage(*kept, owner_->hello_.block_bytes);
  bool reads_on = true;
  const Status status =
      message.ok() ? Handle(std::move(*message), kept, &reads_on) : message.status();
  if (!status.ok()) {
    channel_->Close(status.message());
  } else if (reads_on) {
    channel_->ReadNext();
  }
}

Status DecodeSession::Handle(HandoverMessage message, std::shared_ptr<const WireBytes> bytes,
                             bool* reads_on) {
  if (const auto* hello = std::get_if<Hello>(&message)) return HandleHello(*hello);
  if (!greeted_) return {StatusCode::kInvalidArgument, "it does not begin with a hello"};
  if (const auto* run = std::get_if<BlockRun>(&message)) {
    *reads_on = !ImportBlocks(*run, std::move(bytes));
    return Status::Ok();
  }
  if (auto* start = std::get_if<StartCall>(&message)) return StartRequest(std::move(*start));
  if (const auto* cancel = std::get_if<CancelCall>(&message)) {
    CancelRequest(*cancel);
    return Status::Ok();
  }
  return {StatusCode::kInvalidArgument, "it sends messages of a decode instance"};
}

Status DecodeSession::HandleHello(const Hello& hello) {
  if (hello == owner_->hello_ && !greeted_) {
    greeted_ = true;
    return Status::Ok();
  }
  return {StatusCode::kInvalidArgument,
          fmt::format("it serves '{}', this server '{}'", hello.model, owner_->hello_.model)};
}

// Reading stops until the blocks are in place, so that at most one frame waits for the engine.
// Returns whether they will be in place.
bool DecodeSession::ImportBlocks(const BlockRun& run, std::shared_ptr<const WireBytes> bytes) {
  return owner_->engine_->VisitBlocks(
      [self = shared_from_this(), run, kept = std::move(bytes)](BlockManager* blocks) {
        const auto read_on = [&self] {
          boost::asio::post(self->owner_->io_, [self] { self->channel_->ReadNext(); });
        };
        try {
          ImportPrefix(blocks, self->owner_->port_, run);
        } catch (const std::bad_alloc&) {
          read_on();
          throw;  // the engine begins anew
        }
        read_on();
      });
}

Status DecodeSession::StartRequest(StartCall start) {
  const uint64_t call = start.call;
  if (calls_.contains(call)) {
    return {StatusCode::kInvalidArgument, fmt::format("call {} runs already", call)};
  }
  if (std::ssize(calls_) >= DecodeListener::kMaxCallsPerSession) {
    return {StatusCode::kInvalidArgument,
            fmt::format("{} calls run already", DecodeListener::kMaxCallsPerSession)};
  }
  Running running{.num_live = NumSamples(start.request)};
  const Status status = owner_->engine_->Submit(
      std::move(start.request),
      [self = shared_from_this(), call](RequestOutput output) {
        boost::asio::post(self->owner_->io_, [self, call, taken = std::move(output)]() mutable {
          self->OnOutput(call, std::move(taken));
        });
      },
      &running.id);
  if (status.ok()) {
    calls_[call] = running;
  } else {
    channel_->Write(FrameOf(CallRefusal{call, status}));
  }
  return Status::Ok();
}

void DecodeSession::CancelRequest(const CancelCall& cancel) {
  const auto found = calls_.find(cancel.call);
  if (found == calls_.end()) return;  // the call has ended meanwhile
  if (cancel.sample < 0) {
    owner_->engine_->Cancel(found->second.id);
  } else {
    owner_->engine_->CancelSample(found->second.id, cancel.sample);
  }
}

void DecodeSession::OnOutput(uint64_t call, RequestOutput output) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  if (output.finish && --found->second.num_live == 0) calls_.erase(found);
  if (!closed_) channel_->Write(FrameOf(CallOutput{call, std::move(output)}));
}

void DecodeSession::OnClosed(const std::string& reason) {
  closed_ = true;
  spdlog::info("a prefill instance is gone, with {} requests: {}", calls_.size(), reason);
  for (const auto& [call, running] : calls_) owner_->engine_->Cancel(running.id);
  owner_->sessions_.erase(shared_from_this());
}

}  // namespace skein
