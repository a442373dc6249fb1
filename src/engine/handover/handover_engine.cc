#include "engine/handover/handover_engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/handover/prefix_transfer.h"

namespace skein {
namespace {

constexpr size_t kFrameBytes = size_t{32} << 20;
// A request that has begun is not refused for a long wait.
constexpr TimeUs kPatientUs = TimeUs{86'400} * 1'000'000;

}  // namespace

HandoverEngine::HandoverEngine(EngineLoop* local, const KvPort* port, const Clock* clock,
                               HandoverConfig config)
    : local_(local),
      port_(port),
      clock_(clock),
      config_(std::move(config)),
      peer_(config_.peer, config_.hello, config_.max_queued_bytes,
            {.output = [this](uint64_t call,
                              RequestOutput output) { OnPeerOutput(call, std::move(output)); },
             .refused =
                 [this](uint64_t call, const Status& /*status*/) {
                   if (const CallPtr found = Find(call)) TakeBack(found);
                 },
             .lost = [this] { OnPeerLost(); }}) {}

HandoverEngine::~HandoverEngine() { Stop(); }

void HandoverEngine::Stop() {
  stopping_.store(true);
  peer_.Stop();
}

bool HandoverEngine::HandsOver(const Request& request) const {
  if (!request.generates() || request.prompt_logprobs || !peer_.connected()) return false;
  const GenerateSpec& generate = request.generate();
  if (generate.grammar != nullptr || !generate.choices.empty()) return false;
  const int64_t room = local_->Limits().max_model_len - std::ssize(request.prompt);
  if (std::min<int64_t>(generate.max_tokens, room) < 2) return false;
  if (peer_.queued_bytes() > config_.max_queued_bytes) return false;
  const std::lock_guard lock(mutex_);
  return std::ssize(calls_) < config_.max_calls;
}

Status HandoverEngine::Submit(Request request, OutputCallback callback, RequestId* id) {
  if (!HandsOver(request)) return local_->Submit(std::move(request), std::move(callback), id);
  SKEIN_RETURN_IF_ERROR(local_->Check(request));
  Request prefill = request;
  prefill.generate().max_tokens = 1;
  prefill.generate().min_tokens = std::min(request.generate().min_tokens, 1);
  const auto call = std::make_shared<HandoverCall>(std::move(request), std::move(callback));
  const std::lock_guard lock(call->mutex);  // the first output waits until the id is set
  SKEIN_RETURN_IF_ERROR(local_->Submit(
      std::move(prefill),
      [this, call](RequestOutput output) { OnPrefillOutput(call, std::move(output)); },
      &call->local_id));
  *id = call->id = call->local_id;
  const std::lock_guard calls_lock(mutex_);
  calls_[call->id] = call;
  return Status::Ok();
}

HandoverEngine::CallPtr HandoverEngine::Find(RequestId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second;
}

void HandoverEngine::CancelSample(RequestId id, int32_t sample) {
  const CallPtr call = Find(id);
  const bool is_handed_over = call != nullptr;
  if (!is_handed_over) {
    sample < 0 ? local_->Cancel(id) : local_->CancelSample(id, sample);
    return;
  }
  const std::lock_guard lock(call->mutex);
  call->NoteCancelled(sample);
  if (call->stage == CallStage::kExporting) return;
  if (call->stage == CallStage::kPeer) {
    peer_.Send(id, {FrameOf(CancelCall{id, sample})});
  } else if (sample < 0) {
    local_->Cancel(call->local_id);
  } else {
    local_->CancelSample(call->local_id, sample);
  }
}

bool HandoverEngine::Forward(const CallPtr& call, RequestOutput output) {
  bool differs = false;
  std::optional<RequestOutput> news = call->Take(std::move(output), clock_->NowUs(), &differs);
  if (!news) return !differs;
  const bool finishes = news->finish.has_value();
  call->callback()(*std::move(news));
  if (!finishes) return true;
  const std::lock_guard lock(call->mutex);
  if (!call->AllEnded()) return true;
  if (call->stage == CallStage::kPeer) --num_at_peer_;
  const std::lock_guard calls_lock(mutex_);
  calls_.erase(call->id);
  return true;
}

void HandoverEngine::EndAll(const CallPtr& call, FinishReason finish, const Status& status) {
  const int32_t num_samples = NumSamples(call->request());
  for (int32_t i = 0; i < num_samples; ++i) {
    Forward(call, {.sample = i, .finish = finish, .status = status});
  }
}

void HandoverEngine::EndCancelled(const CallPtr& call) {
  const int32_t num_samples = NumSamples(call->request());
  for (int32_t i = 0; i < num_samples; ++i) {
    bool ends = false;
    {
      const std::lock_guard lock(call->mutex);
      ends = call->IsCancelled(i);
    }
    if (ends) Forward(call, {.sample = i, .finish = FinishReason::kCancelled});
  }
}

void HandoverEngine::OnPrefillOutput(const CallPtr& call, RequestOutput output) {
  Forward(call, std::move(output));
  if (!call->IsPrefilled()) return;
  {
    const std::lock_guard lock(call->mutex);
    if (call->AllEnded()) return;
    call->BeginStage(CallStage::kExporting);
  }
  const bool visits =
      local_->VisitBlocks([this, call](BlockManager* blocks) { Export(call, blocks); });
  if (!visits) TakeBack(call);
}

void HandoverEngine::Export(const CallPtr& call, BlockManager* blocks) {
  const Request& request = call->request();
  EndCancelled(call);
  std::vector<WireBytes> frames;
  const std::lock_guard lock(call->mutex);
  if (call->AllEnded()) return;
  num_blocks_sent_ += static_cast<uint64_t>(ExportPrefix(
      blocks, *port_, {.adapter_id = request.adapter_id, .cache_salt = request.cache_salt},
      request.prompt, config_.max_queued_bytes, kFrameBytes,
      [&](WireBytes frame) { frames.push_back(std::move(frame)); }));
  frames.push_back(FrameOf(StartCall{call->id, request}));
  for (int32_t i = 0; i < NumSamples(request); ++i) {
    if (call->HasEnded(i) || call->IsCancelled(i))
      frames.push_back(FrameOf(CancelCall{call->id, i}));
  }
  call->BeginStage(CallStage::kPeer);
  ++num_handed_over_;
  ++num_at_peer_;
  peer_.Send(call->id, std::move(frames));
}

// An error of the peer is not passed on as an answer: the peer may just have ended.
void HandoverEngine::OnPeerOutput(RequestId id, RequestOutput output) {
  const CallPtr call = Find(id);
  if (call == nullptr || output.sample < 0 || output.sample >= NumSamples(call->request())) return;
  bool fails = output.finish == FinishReason::kError;
  {
    const std::lock_guard lock(call->mutex);
    if (call->stage != CallStage::kPeer) return;
    fails |= output.finish == FinishReason::kCancelled && !call->IsCancelled(output.sample) &&
             !call->HasEnded(output.sample);
  }
  if (!fails && Forward(call, std::move(output))) return;
  if (!fails) {
    spdlog::error("the decode peer draws other tokens than this server for request {}", id);
  }
  TakeBack(call);
}

void HandoverEngine::OnPeerLost() {
  std::vector<CallPtr> calls;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, call] : calls_) calls.push_back(call);
  }
  for (const CallPtr& call : calls) {
    bool was_there = false;
    {
      const std::lock_guard lock(call->mutex);
      was_there = call->stage == CallStage::kPeer;
    }
    if (was_there) TakeBack(call);
  }
}

void HandoverEngine::TakeBack(const CallPtr& call) {
  {
    const std::lock_guard lock(call->mutex);
    if (call->stage != CallStage::kPeer && call->stage != CallStage::kExporting) return;
    if (call->stage == CallStage::kPeer) {
      --num_at_peer_;
      ++num_taken_back_;
      if (peer_.connected()) peer_.Send(call->id, {FrameOf(CancelCall{call->id, -1})});
    }
    call->BeginStage(CallStage::kLocal);
  }
  EndCancelled(call);
  Status submitted(StatusCode::kUnavailable, "the server is shutting down");
  {
    const std::lock_guard lock(call->mutex);  // the first output waits until the id is set
    if (call->AllEnded()) return;
    Request request = call->request();
    request.timeout_us = kPatientUs;
    if (!stopping_.load()) {
      submitted = local_->Submit(
          std::move(request),
          [this, call](RequestOutput output) { OnLocalOutput(call, std::move(output)); },
          &call->local_id);
    }
    if (submitted.ok()) {
      for (int32_t i = 0; i < NumSamples(call->request()); ++i) {
        if (call->HasEnded(i) || call->IsCancelled(i)) local_->CancelSample(call->local_id, i);
      }
    }
  }
  if (!submitted.ok()) EndAll(call, FinishReason::kError, submitted);
}

void HandoverEngine::OnLocalOutput(const CallPtr& call, RequestOutput output) {
  if (Forward(call, std::move(output))) return;
  spdlog::error("request {} got other tokens in a second run", call->id);
  local_->Cancel(call->local_id);
  EndAll(call, FinishReason::kError,
         {StatusCode::kInternal, "the answer could not be continued after the decode peer failed"});
}

EngineStats HandoverEngine::Stats() const {
  EngineStats stats = local_->Stats();
  stats.num_requests_running += num_at_peer_.load();
  stats.requests_handed_over = num_handed_over_.load();
  stats.requests_taken_back = num_taken_back_.load();
  stats.handover_blocks = num_blocks_sent_.load();
  return stats;
}

}  // namespace skein
