#include "engine/handover/messages.h"

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "kv/block_pool.h"

namespace skein {
namespace {

constexpr uint32_t kMagic = 0x56484b53;  // "SKHV"

// The kind of a message is its type's index in HandoverMessage.
template <typename T, size_t kIndex = 0>
constexpr uint8_t KindOf() {
  static_assert(kIndex < std::variant_size_v<HandoverMessage>);
  if constexpr (std::is_same_v<T, std::variant_alternative_t<kIndex, HandoverMessage>>) {
    return kIndex;
  } else {
    return KindOf<T, kIndex + 1>();
  }
}

template <typename T>
void PutOptional(const std::optional<T>& value, WireWriter* out) {
  out->Flag(value.has_value());
  if (value) out->Number(*value);
}

template <typename T>
std::optional<T> TakeOptional(const char* field, WireReader* in) {
  if (!in->Flag(field)) return std::nullopt;
  return in->Number<T>(field);
}

void Put(const SamplingParams& sampling, WireWriter* out) {
  out->Number(sampling.temperature);
  out->Number(sampling.top_k);
  out->Number(sampling.top_p);
  out->Number(sampling.min_p);
  out->Number(sampling.repetition_penalty);
  out->Number(sampling.presence_penalty);
  out->Number(sampling.frequency_penalty);
  out->Number(static_cast<uint32_t>(sampling.logit_bias.size()));
  for (const auto& [token, bias] : sampling.logit_bias) {
    out->Number(token);
    out->Number(bias);
  }
  out->List(std::span(sampling.allowed_token_ids));
  out->Number(sampling.seed);
}

SamplingParams TakeSampling(WireReader* in) {
  SamplingParams sampling;
  sampling.temperature = in->Number<float>("temperature");
  sampling.top_k = in->Number<int32_t>("top_k");
  sampling.top_p = in->Number<float>("top_p");
  sampling.min_p = in->Number<float>("min_p");
  sampling.repetition_penalty = in->Number<float>("repetition_penalty");
  sampling.presence_penalty = in->Number<float>("presence_penalty");
  sampling.frequency_penalty = in->Number<float>("frequency_penalty");
  const size_t num_biases = in->Count("logit_bias", sizeof(TokenId) + sizeof(float));
  for (size_t i = 0; i < num_biases; ++i) {
    const auto token = in->Number<TokenId>("logit_bias");
    sampling.logit_bias.emplace_back(token, in->Number<float>("logit_bias"));
  }
  sampling.allowed_token_ids = in->List<TokenId>("allowed_token_ids");
  sampling.seed = in->Number<uint64_t>("seed");
  return sampling;
}

void Put(const Request& request, WireWriter* out) {
  SKEIN_CHECK(request.generates());
  const GenerateSpec& generate = request.generate();
  SKEIN_CHECK(generate.grammar == nullptr && generate.choices.empty() && !request.prompt_logprobs);
  out->List(std::span(request.prompt));
  out->Number(generate.max_tokens);
  out->Number(generate.min_tokens);
  Put(generate.sampling, out);
  out->List(std::span(generate.stop_token_ids));
  PutOptional(generate.num_logprobs, out);
  out->List(std::span(generate.logprob_token_ids));
  out->Number(generate.num_samples);
  out->Number(request.priority);
  PutOptional(request.slo_ttft_us, out);
  PutOptional(request.slo_tpot_us, out);
  out->Text(request.user);
  out->Number(request.cache_salt);
  out->Number(request.adapter_id);
}

Request TakeRequest(WireReader* in) {
  Request request;
  GenerateSpec generate;
  request.prompt = in->List<TokenId>("prompt");
  generate.max_tokens = in->Number<int32_t>("max_tokens");
  generate.min_tokens = in->Number<int32_t>("min_tokens");
  generate.sampling = TakeSampling(in);
  generate.stop_token_ids = in->List<TokenId>("stop_token_ids");
  generate.num_logprobs = TakeOptional<int32_t>("num_logprobs", in);
  generate.logprob_token_ids = in->List<TokenId>("logprob_token_ids");
  generate.num_samples = in->Number<int32_t>("num_samples");
  request.output = std::move(generate);
  request.priority = in->Number<int32_t>("priority");
  request.slo_ttft_us = TakeOptional<TimeUs>("slo_ttft_us", in);
  request.slo_tpot_us = TakeOptional<TimeUs>("slo_tpot_us", in);
  request.user = in->Text("user");
  request.cache_salt = in->Number<uint64_t>("cache_salt");
  request.adapter_id = in->Number<int32_t>("adapter_id");
  return request;
}

void Put(const Status& status, WireWriter* out) {
  out->Number(static_cast<uint8_t>(status.code()));
  out->Text(status.message());
  out->Text(status.param());
  out->Number(status.retry_after_s());
}

Status TakeStatus(WireReader* in) {
  const auto code = in->Number<uint8_t>("status");
  if (code > static_cast<uint8_t>(StatusCode::kInternal)) in->Fail("status");
  std::string message = in->Text("message");
  std::string param = in->Text("param");
  const auto retry_after_s = in->Number<int64_t>("retry_after_s");
  const bool ok = code == static_cast<uint8_t>(StatusCode::kOk);
  if (ok && !(message.empty() && param.empty() && retry_after_s == 0)) in->Fail("status");
  if (in->failed() || ok) return Status::Ok();
  return Status(static_cast<StatusCode>(code), std::move(message), std::move(param))
      .RetryAfter(retry_after_s);
}

void Put(const TokenLogprob& logprob, WireWriter* out) {
  out->Number(logprob.token);
  out->Number(logprob.logprob);
  out->Number(logprob.rank);
}

TokenLogprob TakeLogprob(WireReader* in) {
  TokenLogprob logprob;
  logprob.token = in->Number<TokenId>("token");
  logprob.logprob = in->Number<float>("logprob");
  logprob.rank = in->Number<int32_t>("rank");
  return logprob;
}

constexpr size_t kLogprobBytes = sizeof(TokenId) + sizeof(float) + sizeof(int32_t);
constexpr size_t kLeastTokenBytes = sizeof(TokenId) + kLogprobBytes + 2 * sizeof(uint32_t);

void Put(const std::vector<TokenLogprob>& logprobs, WireWriter* out) {
  out->Number(static_cast<uint32_t>(logprobs.size()));
  for (const TokenLogprob& logprob : logprobs) Put(logprob, out);
}

std::vector<TokenLogprob> TakeLogprobs(const char* field, WireReader* in) {
  std::vector<TokenLogprob> logprobs(in->Count(field, kLogprobBytes));
  for (TokenLogprob& logprob : logprobs) logprob = TakeLogprob(in);
  return logprobs;
}

void Put(const RequestOutput& output, WireWriter* out) {
  out->Number(output.sample);
  out->Number(static_cast<uint32_t>(output.tokens.size()));
  for (const OutputToken& token : output.tokens) {
    out->Number(token.token);
    Put(token.chosen, out);
    Put(token.top_logprobs, out);
    Put(token.named_logprobs, out);
  }
  out->Flag(output.finish.has_value());
  if (output.finish) out->Number(static_cast<uint8_t>(*output.finish));
  Put(output.status, out);
  out->Number(output.cached_tokens);
}

RequestOutput TakeOutput(WireReader* in) {
  RequestOutput output;
  output.sample = in->Number<int32_t>("sample");
  output.tokens.resize(in->Count("tokens", kLeastTokenBytes));
  for (OutputToken& token : output.tokens) {
    token.token = in->Number<TokenId>("token");
    token.chosen = TakeLogprob(in);
    token.top_logprobs = TakeLogprobs("top_logprobs", in);
    token.named_logprobs = TakeLogprobs("named_logprobs", in);
  }
  if (in->Flag("finish")) {
    const auto finish = in->Number<uint8_t>("finish");
    if (finish > static_cast<uint8_t>(FinishReason::kError)) in->Fail("finish");
    output.finish = static_cast<FinishReason>(finish);
  }
  output.status = TakeStatus(in);
  if (output.status.ok() == (output.finish == FinishReason::kError)) in->Fail("status");
  output.cached_tokens = in->Number<int32_t>("cached_tokens");
  return output;
}

void PutFields(const Hello& hello, WireWriter* out) {
  out->Number(hello.version);
  out->Number(hello.block_bytes);
  out->Text(hello.model);
}

Hello TakeHello(WireReader* in) {
  Hello hello;
  hello.version = in->Number<uint32_t>("version");
  hello.block_bytes = in->Number<uint64_t>("block_bytes");
  hello.model = in->Text("model");
  return hello;
}

void PutFields(const BlockRun& run, WireWriter* out) {
  out->Number(run.scope.adapter_id);
  out->Number(run.scope.cache_salt);
  out->Number(run.first_block);
  out->List(std::span(run.tokens));
  out->Raw(run.data);
}

BlockRun TakeBlocks(uint64_t block_bytes, WireReader* in) {
  BlockRun run;
  run.scope.adapter_id = in->Number<int32_t>("adapter_id");
  run.scope.cache_salt = in->Number<uint64_t>("cache_salt");
  run.first_block = in->Number<int32_t>("first_block");
  run.tokens = in->List<TokenId>("tokens");
  const int64_t num_tokens = std::ssize(run.tokens);
  const int64_t num_blocks = num_tokens / kBlockTokens - run.first_block;
  if (run.first_block < 0) in->Fail("first_block");
  if (num_tokens > std::numeric_limits<int32_t>::max() || num_tokens % kBlockTokens != 0 ||
      num_blocks < 1) {
    in->Fail("tokens");
  }
  if (in->failed()) return run;
  if (block_bytes == 0 || static_cast<uint64_t>(num_blocks) > in->rest().size() / block_bytes) {
    in->Fail("data");
    return run;
  }
  run.data = in->Raw("data", static_cast<size_t>(num_blocks) * block_bytes);
  return run;
}

void PutFields(const StartCall& start, WireWriter* out) {
  out->Number(start.call);
  Put(start.request, out);
}

void PutFields(const CancelCall& cancel, WireWriter* out) {
  out->Number(cancel.call);
  out->Number(cancel.sample);
}

void PutFields(const CallOutput& output, WireWriter* out) {
  out->Number(output.call);
  Put(output.output, out);
}

void PutFields(const CallRefusal& refusal, WireWriter* out) {
  out->Number(refusal.call);
  Put(refusal.status, out);
}

void PutFields(const Alive& /*alive*/, WireWriter* /*out*/) {}

HandoverMessage TakeMessage(uint8_t kind, uint64_t block_bytes, WireReader* in) {
  switch (kind) {
    case KindOf<Hello>():
      return TakeHello(in);
    case KindOf<BlockRun>():
      return TakeBlocks(block_bytes, in);
    case KindOf<StartCall>(): {
      StartCall start;
      start.call = in->Number<uint64_t>("call");
      start.request = TakeRequest(in);
      return start;
    }
    case KindOf<CancelCall>(): {
      CancelCall cancel;
      cancel.call = in->Number<uint64_t>("call");
      cancel.sample = in->Number<int32_t>("sample");
      return cancel;
    }
    case KindOf<CallOutput>(): {
      CallOutput output;
      output.call = in->Number<uint64_t>("call");
      output.output = TakeOutput(in);
      return output;
    }
    case KindOf<CallRefusal>(): {
      CallRefusal refusal;
      refusal.call = in->Number<uint64_t>("call");
      refusal.status = TakeStatus(in);
      if (refusal.status.ok()) in->Fail("status");
      return refusal;
    }
    case KindOf<Alive>():
      return Alive{};
    default:
      in->Fail("kind");
      return Alive{};
  }
}

Status Malformed(const std::string& message) {
  return {StatusCode::kInvalidArgument, "malformed hand-over: " + message};
}

}  // namespace

WireBytes FrameOf(const HandoverMessage& message) {
  WireBytes frame;
  if (const auto* run = std::get_if<BlockRun>(&message)) {
    constexpr size_t kOtherFields = 64;
    frame.reserve(kFrameHeadBytes + kOtherFields + run->tokens.size() * sizeof(TokenId) +
                  run->data.size());
  }
  WireWriter out(&frame);
  out.Number(kMagic);
  out.Number(uint32_t{0});
  out.Number(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& fields) { PutFields(fields, &out); }, message);
  const size_t num_bytes = frame.size() - kFrameHeadBytes;
  SKEIN_CHECK(num_bytes <= kMaxFrameBytes);
  const auto length = static_cast<uint32_t>(num_bytes);
  std::memcpy(frame.data() + sizeof(kMagic), &length, sizeof(length));
  return frame;
}

Result<size_t> ParseFrameHead(std::span<const std::byte, kFrameHeadBytes> head) {
  WireReader in(head);
  if (in.Number<uint32_t>("magic") != kMagic) return Malformed("a frame must begin with 'SKHV'");
  const auto length = in.Number<uint32_t>("length");
  if (length >= 1 && length <= kMaxFrameBytes) return size_t{length};
  return Malformed(
      fmt::format("the length of a frame is {}, must be in [1, {}]", length, kMaxFrameBytes));
}

Result<HandoverMessage> ParseMessage(std::span<const std::byte> bytes, uint64_t block_bytes) {
  WireReader in(bytes);
  const auto kind = in.Number<uint8_t>("kind");
  HandoverMessage message = TakeMessage(kind, block_bytes, &in);
  if (!in.failed() && !in.rest().empty()) {
    return Malformed(fmt::format("{} bytes follow the last field", in.rest().size()));
  }
  if (!in.failed()) return message;
  return Malformed(fmt::format("field '{}' of a message of kind {} is cut off or out of range",
                               in.field(), kind));
}

}  // namespace skein
