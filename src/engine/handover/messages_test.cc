#include "engine/handover/messages.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "kv/block_pool.h"

namespace skein {
namespace {

constexpr uint64_t kPortBytes = 48;

Request FullRequest() {
  Request request;
  request.prompt = {5, 6, 7, 8};
  GenerateSpec& generate = request.generate();
  generate.max_tokens = 77;
  generate.min_tokens = 3;
  generate.sampling = {.temperature = 0.5f,
                       .top_k = 4,
                       .top_p = 0.9f,
                       .min_p = 0.1f,
                       .repetition_penalty = 1.5f,
                       .presence_penalty = -1,
                       .frequency_penalty = 2,
                       .logit_bias = {{3, 1.5f}, {9, -100.0f}},
                       .allowed_token_ids = {1, 2, 3},
                       .seed = 0xfedcba9876543210};
  generate.stop_token_ids = {2, 11};
  generate.num_logprobs = 0;
  generate.logprob_token_ids = {4};
  generate.num_samples = 3;
  request.priority = -2;
  request.slo_ttft_us = 250'000;
  request.user = "someone";
  request.cache_salt = 99;
  request.adapter_id = 1;
  return request;
}

CallOutput FullOutput() {
  RequestOutput output{.sample = 2};
  output.tokens.push_back({.token = 17,
                           .chosen = {17, -0.25f, 2},
                           .top_logprobs = {{16, -0.125f, 1}, {17, -0.25f, 2}},
                           .named_logprobs = {{4, -3.5f, 0}}});
  output.tokens.push_back({.token = 18});
  output.finish = FinishReason::kStop;
  output.cached_tokens = 64;
  return {.call = 12, .output = output};
}

std::vector<HandoverMessage> AllMessages(std::vector<std::byte>* data) {
  data->resize(2 * kPortBytes);
  for (size_t i = 0; i < data->size(); ++i) (*data)[i] = static_cast<std::byte>(i);
  BlockRun run{.scope = {1, 99}, .first_block = 1, .data = *data};
  for (int32_t i = 0; i < 3 * kBlockTokens; ++i) run.tokens.push_back(i);
  CallOutput failed = {.call = 3, .output = {.finish = FinishReason::kError}};
  failed.output.status = Status(StatusCode::kInternal, "not finite", "logits");
  return {Hello{.block_bytes = kPortBytes, .model = "some weights"},
          run,
          StartCall{.call = 1, .request = FullRequest()},
          CancelCall{.call = 1, .sample = 2},
          FullOutput(),
          failed,
          CallRefusal{.call = 5,
                      .status = Status(StatusCode::kResourceExhausted, "full").RetryAfter(3)},
          Alive{}};
}

std::span<const std::byte> BodyOf(const WireBytes& frame) {
  return std::span(frame).subspan(kFrameHeadBytes);
}

Result<size_t> HeadOf(const WireBytes& frame) {
  std::array<std::byte, kFrameHeadBytes> head;
  std::memcpy(head.data(), frame.data(), head.size());
  return ParseFrameHead(head);
}

TEST(HandoverMessages, AreReadAsTheyWereWritten) {
  std::vector<std::byte> data;
  for (const HandoverMessage& message : AllMessages(&data)) {
    const WireBytes frame = FrameOf(message);
    ASSERT_TRUE(HeadOf(frame).ok());
    EXPECT_EQ(HeadOf(frame).value(), frame.size() - kFrameHeadBytes);
    const auto read = ParseMessage(BodyOf(frame), kPortBytes);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value().index(), message.index());
    // A message that is read and written again has the same bytes: no field was lost.
    EXPECT_EQ(FrameOf(read.value()), frame);
  }
}

TEST(HandoverMessages, AFieldThatWouldBeLostIsSeen) {
  const Request request = FullRequest();
  const WireBytes frame = FrameOf(StartCall{.call = 1, .request = request});
  const auto read = ParseMessage(BodyOf(frame), kPortBytes);
  ASSERT_TRUE(read.ok());
  const Request& got = std::get<StartCall>(read.value()).request;
  EXPECT_EQ(got.prompt, request.prompt);
  EXPECT_EQ(got.generate().max_tokens, 77);
  EXPECT_EQ(got.generate().min_tokens, 3);
  EXPECT_EQ(got.generate().sampling.logit_bias, request.generate().sampling.logit_bias);
  EXPECT_EQ(got.generate().sampling.allowed_token_ids, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_EQ(got.generate().sampling.seed, request.generate().sampling.seed);
  EXPECT_EQ(got.generate().sampling.frequency_penalty, 2);
  EXPECT_EQ(got.generate().stop_token_ids, request.generate().stop_token_ids);
  EXPECT_EQ(got.generate().num_logprobs, 0);
  EXPECT_EQ(got.generate().logprob_token_ids, std::vector<TokenId>{4});
  EXPECT_EQ(got.generate().num_samples, 3);
  EXPECT_EQ(got.priority, -2);
  EXPECT_EQ(got.slo_ttft_us, 250'000);
  EXPECT_EQ(got.slo_tpot_us, std::nullopt);
  EXPECT_EQ(got.user, "someone");
  EXPECT_EQ(got.cache_salt, 99u);
  EXPECT_EQ(got.adapter_id, 1);
}

TEST(HandoverMessages, EveryCutIsRefused) {
  std::vector<std::byte> data;
  for (const HandoverMessage& message : AllMessages(&data)) {
    const WireBytes frame = FrameOf(message);
    for (size_t size = 0; size < BodyOf(frame).size(); ++size) {
      const auto read = ParseMessage(BodyOf(frame).first(size), kPortBytes);
      ASSERT_FALSE(read.ok()) << message.index() << " cut to " << size;
      EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
    }
    WireBytes longer = frame;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(ParseMessage(BodyOf(longer), kPortBytes).ok()) << message.index();
  }
}

TEST(HandoverMessages, RandomBytesAreRefusedOrReadWithoutHarm) {
  Random random(7);
  std::vector<std::byte> data;
  const std::vector<HandoverMessage> messages = AllMessages(&data);
  int num_refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    WireBytes frame = FrameOf(messages[random.Between(0, std::ssize(messages) - 1)]);
    for (int64_t flips = random.Between(1, 4); flips > 0; --flips) {
      const auto at = static_cast<size_t>(random.Between(kFrameHeadBytes, std::ssize(frame) - 1));
      frame[at] = static_cast<std::byte>(random.Between(0, 255));
    }
    const auto read = ParseMessage(BodyOf(frame), kPortBytes);
    num_refused += !read.ok();
    if (read.ok()) continue;
    EXPECT_FALSE(read.status().message().empty());
  }
  EXPECT_GT(num_refused, 1000);
}

TEST(HandoverMessages, ErrorsNameTheField) {
  const auto message = [](const WireBytes& frame) {
    const auto read = ParseMessage(BodyOf(frame), kPortBytes);
    return read.ok() ? std::string("ok") : read.status().message();
  };
  WireBytes frame = FrameOf(Alive{});
  frame.back() = std::byte{200};
  EXPECT_NE(message(frame).find("'kind'"), std::string::npos) << message(frame);
  std::vector<std::byte> data(kPortBytes);
  BlockRun run{.first_block = 0, .data = data};
  run.tokens.assign(kBlockTokens + 1, 1);
  EXPECT_NE(message(FrameOf(run)).find("'tokens'"), std::string::npos);
  run.tokens.assign(2 * kBlockTokens, 1);
  EXPECT_NE(message(FrameOf(run)).find("'data'"), std::string::npos);
  run.first_block = -1;
  EXPECT_NE(message(FrameOf(run)).find("'first_block'"), std::string::npos);
  run.first_block = 1;
  EXPECT_EQ(message(FrameOf(run)), "ok");
  CallOutput output{.call = 1, .output = {.finish = FinishReason::kError}};
  EXPECT_NE(message(FrameOf(output)).find("'status'"), std::string::npos);
  // A status that is ok says nothing more: its last field is the time of a retry.
  output.output.finish = FinishReason::kStop;
  WireBytes ended = FrameOf(output);
  EXPECT_EQ(message(ended), "ok");
  ended[ended.size() - sizeof(int32_t) - 1] = std::byte{1};
  EXPECT_NE(message(ended).find("'status'"), std::string::npos);
}

TEST(HandoverMessages, HeadsAreChecked) {
  WireBytes frame = FrameOf(Alive{});
  EXPECT_EQ(HeadOf(frame).value(), 1u);
  frame[0] = std::byte{'G'};
  EXPECT_NE(HeadOf(frame).status().message().find("'SKHV'"), std::string::npos);
  frame = FrameOf(Alive{});
  for (const uint32_t length : {uint32_t{0}, uint32_t{kMaxFrameBytes} + 1, ~uint32_t{0}}) {
    std::memcpy(frame.data() + 4, &length, sizeof(length));
    EXPECT_FALSE(HeadOf(frame).ok()) << length;
  }
}

}  // namespace
}  // namespace skein
