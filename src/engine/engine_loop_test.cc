#include "engine/engine_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "testing/engine_loop.h"
#include "testing/fake_executor.h"

namespace skein {
namespace {

using testing::Answers;
using testing::Fixture;
using ::testing::HasSubstr;
using testing::MakeRequest;

// The members of a group enter the scheduler together, in any state of the engine: their shared
// prefix is computed once.
TEST(EngineLoop, AGroupArrivesAsOne) {
  Fixture fixture({}, [](EngineConfig* config) { config->max_queued_requests = 20; });
  for (int round = 0; round < 30; ++round) {
    std::vector<Request> group;
    for (int i = 0; i < 6; ++i) {
      group.push_back(MakeRequest(24 + i, 1, static_cast<TokenId>(round)));
      group.back().prompt.back() = 50 + i;
      if (i == 2) group.back().slo_ttft_us = 5000;
    }
    std::vector<RequestId> ids;
    ASSERT_TRUE(fixture.engine->SubmitGroup(group, fixture.answers.Callback(), &ids).ok());
    ASSERT_EQ(ids.size(), 6u);
    fixture.answers.WaitFinished(6 * (round + 1));
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(fixture.answers.Of(ids[i]).tokens,
                FakeExecutor::Expected(fixture.options, group[i], 0, 1));
    }
  }
  EXPECT_TRUE(fixture.engine->Drain(1'000'000));
  EXPECT_EQ(fixture.engine->Stats().shared_prefixes, 30u);
  EXPECT_EQ(fixture.engine->Stats().requests_oneshot, 180u);
}

TEST(EngineLoop, GroupsAreTakenWholeOrNotAtAll) {
  Fixture fixture({}, [](EngineConfig* config) { config->max_queued_requests = 20; });
  std::vector<RequestId> ids;
  const std::vector<Request> many(21, MakeRequest(10, 1));
  const auto callback = [](const RequestOutput&) { ADD_FAILURE() << "of a refused group"; };
  const Status full = fixture.engine->SubmitGroup(many, callback, &ids);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("21 more exceed the limit of 20"));
  std::vector<Request> bad(3, MakeRequest(10, 1));
  bad[2].prompt[0] = 1000;
  const Status invalid = fixture.engine->SubmitGroup(bad, callback, &ids);
  EXPECT_EQ(invalid.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(invalid.message(), HasSubstr("2: prompt[0]"));
  EXPECT_TRUE(fixture.engine->SubmitGroup({}, callback, &ids).ok());
  EXPECT_TRUE(fixture.engine->Drain(1'000'000));
}

TEST(EngineLoop, AViewShowsRunningAndWaitingRequests) {
  Fixture fixture({.step_us = 5000}, [](EngineConfig* config) {
    config->scheduler.max_num_seqs = 1;
    config->scheduler.max_model_len = 4000;
    config->scheduler.num_kv_blocks = 400;
  });
  std::vector<RequestId> ids(4);
  const int priorities[] = {0, 2, 3, 1};
  for (int i = 0; i < 4; ++i) {
    Request request = MakeRequest(100, 3000, static_cast<TokenId>(i));
    request.priority = priorities[i];
    if (i == 3) request.slo_ttft_us = 10'000'000;
    ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &ids[i]).ok());
    if (i == 0) fixture.answers.WaitTokens(ids[0], 1);
  }
  std::promise<EngineView> seen;
  ASSERT_TRUE(fixture.engine->View([&](EngineView view) { seen.set_value(std::move(view)); }).ok());
  const EngineView view = seen.get_future().get();
  EXPECT_EQ(view.num_running, 1);
  EXPECT_EQ(view.num_suspended, 0);
  EXPECT_EQ(view.num_waiting, 3);
  ASSERT_EQ(view.requests.size(), 4u);
  const int by_urgency[] = {0, 3, 1, 2};
  for (int place = 0; place < 4; ++place) {
    const RequestView& request = view.requests[place];
    const int i = by_urgency[place];
    EXPECT_EQ(request.id, ids[i]);
    EXPECT_EQ(request.priority, priorities[i]);
    EXPECT_EQ(request.state, i < 1 ? RequestView::State::kRunning : RequestView::State::kWaiting);
    EXPECT_EQ(request.prompt_tokens, 100);
    EXPECT_FALSE(request.oneshot);
    EXPECT_EQ(request.output_tokens > 0, i < 1);
    EXPECT_EQ(request.computed_tokens >= 100, i < 1);
    EXPECT_EQ(request.slack_us.has_value(), i == 3);
  }
  EXPECT_GT(view.requests[1].slack_us.value_or(0), 0);
  EXPECT_EQ(view.num_used_blocks, fixture.engine->Stats().kv_blocks_used);
  EXPECT_GT(view.num_prefixes, 0);
  for (const RequestId id : ids) fixture.engine->Cancel(id);
  fixture.answers.WaitFinished(4);
  fixture.engine->Shutdown();
  EXPECT_EQ(fixture.engine->View([](const EngineView&) { FAIL(); }).code(),
            StatusCode::kUnavailable);
}

TEST(EngineLoop, AThousandDocumentsFitByDefault) {
  Fixture fixture;
  std::vector<RequestId> ids;
  const std::vector<Request> group(1000, MakeRequest(10, 1));
  ASSERT_TRUE(fixture.engine->SubmitGroup(group, fixture.answers.Callback(), &ids).ok());
  fixture.answers.WaitFinished(1000);
}

TEST(EngineLoop, AnswersWithTimes) {
  Fixture fixture;
  RequestId id = 99;
  const Request request = MakeRequest(100, 20);
  ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &id).ok());
  fixture.answers.WaitFinished(1);
  const Answers::Sample answer = fixture.answers.Of(id);
  EXPECT_EQ(answer.tokens, FakeExecutor::Expected(fixture.options, request, 0, 20));
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_LE(answer.times.arrival_us, answer.times.first_scheduled_us);
  EXPECT_LE(answer.times.first_scheduled_us, answer.times.first_token_us);
  EXPECT_LE(answer.times.first_token_us, answer.times.finished_us);
  EXPECT_GT(answer.times.arrival_us, 0);
}

TEST(EngineLoop, AnswersReads) {
  Fixture fixture({}, [](EngineConfig* config) { config->embeds = config->classifies = true; });
  const OutputSpec outputs[] = {LabelSpec{.tokens = {5, 2, 99}, .want_log_sum_exp = true},
                                EmbedSpec{}, ClassifySpec{}};
  for (const OutputSpec& output : outputs) {
    Request request = MakeRequest(100, 0);
    request.output = output;
    if (output.index() == 1) request.prompt_logprobs = PromptLogprobsSpec{.num_top = 2, .start = 9};
    RequestId id = 0;
    ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &id).ok());
    fixture.answers.WaitFinished(static_cast<int>(id) + 1);
    const Answers::Sample answer = fixture.answers.Of(id);
    EXPECT_EQ(answer.finish, FinishReason::kStop);
    EXPECT_TRUE(answer.tokens.empty());
    ASSERT_TRUE(answer.read.has_value());
    EXPECT_EQ(answer.read->values, FakeExecutor::ExpectedRead(request).values);
    EXPECT_EQ(answer.read->log_sum_exp, FakeExecutor::ExpectedRead(request).log_sum_exp);
    const auto logprobs = FakeExecutor::ExpectedPromptLogprobs(fixture.options, request);
    ASSERT_EQ(answer.prompt_logprobs.size(), logprobs.size());
    for (size_t i = 0; i < logprobs.size(); ++i) {
      EXPECT_EQ(answer.prompt_logprobs[i].position, logprobs[i].position);
      EXPECT_EQ(answer.prompt_logprobs[i].chosen.logprob, logprobs[i].chosen.logprob);
    }
    EXPECT_GT(answer.times.finished_us, 0);
  }
  const EngineStats stats = fixture.engine->Stats();
  EXPECT_EQ(stats.decode_slots_taken, 0u);
  EXPECT_EQ(stats.requests_oneshot, 3u);
}

TEST(EngineLoop, ManyClientsGetWhatEachGetsAlone) {
  Fixture fixture({.preempt_every = 3});
  testing::ServeManyClients(fixture);
}

TEST(EngineLoop, SleepsWhenIdle) {
  Fixture fixture;
  RequestId id = 0;
  ASSERT_TRUE(fixture.engine->Submit(MakeRequest(4, 3), fixture.answers.Callback(), &id).ok());
  ASSERT_TRUE(fixture.engine->Drain(10'000'000));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const uint64_t rounds = fixture.engine->Stats().rounds;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(fixture.engine->Stats().rounds, rounds);
}

TEST(EngineLoop, QueueLimitRefusesWithItsName) {
  Fixture fixture({.step_us = 20'000}, [](EngineConfig* config) {
    config->max_queued_requests = 2;
    config->scheduler.max_num_seqs = 1;
  });
  Status status;
  int num_accepted = 0;
  RequestId id = 0;
  while (status.ok() && num_accepted < 100) {
    status = fixture.engine->Submit(MakeRequest(4, 50), fixture.answers.Callback(), &id);
    num_accepted += status.ok();
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("max_queued_requests"));
  EXPECT_LE(num_accepted, 3 + 1);  // one runs, two wait, and perhaps one has just started
}

TEST(EngineLoop, CancelEndsARunningRequest) {
  Fixture fixture({.step_us = 1000});
  RequestId id = 0;
  ASSERT_TRUE(fixture.engine->Submit(MakeRequest(4, 250), fixture.answers.Callback(), &id).ok());
  fixture.answers.WaitTokens(id, 3);
  fixture.engine->Cancel(id);
  fixture.engine->Cancel(id);
  fixture.answers.WaitFinished(1);
  EXPECT_EQ(fixture.answers.Of(id).finish, FinishReason::kCancelled);
  EXPECT_LT(fixture.answers.Of(id).tokens.size(), 250u);
  EXPECT_TRUE(fixture.engine->Drain(10'000'000));
  fixture.engine->Cancel(id);  // ignored, since the request has ended
}

TEST(EngineLoop, ShutdownEndsEveryRequest) {
  Fixture fixture({.step_us = 1000});
  RequestId id = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(fixture.engine->Submit(MakeRequest(4, 250), fixture.answers.Callback(), &id).ok());
  }
  fixture.answers.WaitTokens(0, 2);
  EXPECT_FALSE(fixture.engine->Drain(1000));
  fixture.engine->Shutdown();
  fixture.answers.WaitFinished(20);
  EXPECT_EQ(fixture.answers.Of(id).finish, FinishReason::kError);
  EXPECT_EQ(fixture.answers.Of(id).status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(fixture.engine->Submit(MakeRequest(4, 1), fixture.answers.Callback(), &id).code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(fixture.engine->Stats().kv_blocks_used, 0);
  fixture.engine->Shutdown();
}

TEST(EngineLoop, NonFiniteLogitsFailOneRequestOnly) {
  Fixture fixture({.poison_token = 99});
  RequestId bad = 0, good = 0;
  ASSERT_TRUE(
      fixture.engine->Submit(MakeRequest(1, 10, 99), fixture.answers.Callback(), &bad).ok());
  Request request = MakeRequest(50, 5);
  request.generate().sampling.seed = 3;
  ASSERT_TRUE(fixture.engine->Submit(request, fixture.answers.Callback(), &good).ok());
  fixture.answers.WaitFinished(2);
  EXPECT_EQ(fixture.answers.Of(bad).finish, FinishReason::kError);
  EXPECT_EQ(fixture.answers.Of(bad).status.code(), StatusCode::kInternal);
  EXPECT_EQ(fixture.answers.Of(good).finish, FinishReason::kLength);
}

TEST(EngineLoop, CallbacksMaySubmitAndCancel) {
  Fixture fixture;
  RequestId first = 0;
  const OutputCallback inner = fixture.answers.Callback();
  ASSERT_TRUE(fixture.engine
                  ->Submit(
                      MakeRequest(4, 30),
                      [&](RequestOutput output) {
                        if (output.tokens.size() == 1 && !output.finish) {
                          fixture.engine->Cancel(output.request);
                        }
                        if (!output.finish) return;
                        RequestId next = 0;
                        EXPECT_TRUE(fixture.engine->Submit(MakeRequest(4, 2), inner, &next).ok());
                      },
                      &first)
                  .ok());
  fixture.answers.WaitFinished(1);
}

// A field, and a change to a request for which that field is refused.
using Spoilt = std::pair<std::string, std::function<void(Request*)>>;

void ExpectRefused(Fixture* fixture, const std::vector<Spoilt>& cases) {
  for (const auto& [field, spoil] : cases) {
    SCOPED_TRACE(field);
    Request request = MakeRequest(4, 16);
    spoil(&request);
    RequestId id = 0;
    const Status status = fixture->engine->Submit(request, fixture->answers.Callback(), &id);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.param(), field);
    EXPECT_THAT(status.message(), HasSubstr(field));
  }
  EXPECT_EQ(fixture->engine->Stats().rounds, 0u);
}

TEST(EngineLoop, SubmitNamesTheField) {
  Fixture fixture;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Spoilt> cases = {
      {"prompt", [](Request* r) { r->prompt.clear(); }},
      {"prompt", [](Request* r) { r->prompt[0] = 100; }},
      {"prompt", [](Request* r) { r->prompt[0] = -1; }},
      {"prompt", [](Request* r) { r->prompt.resize(256, 1); }},
      {"max_tokens", [](Request* r) { r->generate().max_tokens = -1; }},
      {"min_tokens", [](Request* r) { r->generate().min_tokens = 17; }},
      {"n", [](Request* r) { r->generate().num_samples = 0; }},
      {"n", [](Request* r) { r->generate().num_samples = 9; }},
      {"temperature", [](Request* r) { r->generate().sampling.temperature = 2.1f; }},
      {"temperature", [&](Request* r) { r->generate().sampling.temperature = nan; }},
      {"top_k", [](Request* r) { r->generate().sampling.top_k = -1; }},
      {"top_p", [](Request* r) { r->generate().sampling.top_p = 0; }},
      {"top_p", [&](Request* r) { r->generate().sampling.top_p = nan; }},
      {"min_p", [](Request* r) { r->generate().sampling.min_p = 1.5f; }},
      {"repetition_penalty", [](Request* r) { r->generate().sampling.repetition_penalty = 0; }},
      {"repetition_penalty",
       [](Request* r) {
         r->generate().sampling.repetition_penalty = std::numeric_limits<float>::infinity();
       }},
      {"presence_penalty", [](Request* r) { r->generate().sampling.presence_penalty = 3; }},
      {"frequency_penalty", [&](Request* r) { r->generate().sampling.frequency_penalty = nan; }},
      {"logit_bias",
       [](Request* r) {
         r->generate().sampling.logit_bias = {{3, 101.0f}};
       }},
      {"logit_bias",
       [](Request* r) {
         r->generate().sampling.logit_bias = {{100, 1.0f}};
       }},
      {"logit_bias",
       [](Request* r) {
         r->generate().sampling.logit_bias = {{3, 1.0f}, {3, 2.0f}};
       }},
      {"allowed_token_ids", [](Request* r) { r->generate().sampling.allowed_token_ids = {-1}; }},
      {"stop_token_ids", [](Request* r) { r->generate().stop_token_ids = {100}; }},
      {"logprobs", [](Request* r) { r->generate().num_logprobs = 21; }},
  };
  ExpectRefused(&fixture, cases);
}

TEST(EngineLoop, SubmitNamesTheFieldOfWhatIsRead) {
  Fixture fixture({}, [](EngineConfig* config) { config->embeds = true; });
  ExpectRefused(
      &fixture,
      {
          {"label_token_ids", [](Request* r) { r->output = LabelSpec{}; }},
          {"label_token_ids",
           [](Request* r) {
             r->output = LabelSpec{.tokens = {1, 100}};
           }},
          {"label_token_ids",
           [](Request* r) {
             r->output = LabelSpec{.tokens = {1, 2, 1}};
           }},
          {"label_token_ids",
           [](Request* r) { r->output = LabelSpec{.tokens = std::vector<TokenId>(1025, 1)}; }},
          {"prompt_logprobs",
           [](Request* r) {
             r->prompt_logprobs = PromptLogprobsSpec{21, 0};
           }},
          {"prompt_logprobs",
           [](Request* r) {
             r->prompt_logprobs = PromptLogprobsSpec{-1, 0};
           }},
          {"prompt_logprob_start",
           [](Request* r) {
             r->prompt_logprobs = PromptLogprobsSpec{0, 4};
           }},
          {"prompt_logprob_start",
           [](Request* r) {
             r->prompt_logprobs = PromptLogprobsSpec{0, -1};
           }},
          {"prompt_logprobs",
           [](Request* r) {
             r->output = EmbedSpec{};
             r->prompt_logprobs = PromptLogprobsSpec{};
           }},
      });
}

TEST(EngineLoop, RefusesWhatTheModelCannotAnswer) {
  const auto refusal = [](bool generates, bool embeds, bool classifies, OutputSpec output) {
    Fixture fixture({}, [&](EngineConfig* config) {
      config->generates = generates;
      config->embeds = embeds;
      config->classifies = classifies;
    });
    Request request = MakeRequest(4, 1);
    request.output = std::move(output);
    RequestId id = 0;
    const Status status = fixture.engine->Submit(request, fixture.answers.Callback(), &id);
    EXPECT_EQ(fixture.engine->Limits().classifies, classifies);
    EXPECT_EQ(status.param(), status.ok() ? "" : "model");
    return status.code();
  };
  const OutputSpec labels = LabelSpec{.tokens = {1}};
  EXPECT_EQ(refusal(true, false, false, labels), StatusCode::kOk);
  EXPECT_EQ(refusal(false, true, true, labels), StatusCode::kUnsupported);
  EXPECT_EQ(refusal(false, true, true, GenerateSpec{}), StatusCode::kUnsupported);
  EXPECT_EQ(refusal(true, false, true, EmbedSpec{}), StatusCode::kUnsupported);
  EXPECT_EQ(refusal(true, true, false, EmbedSpec{}), StatusCode::kOk);
  EXPECT_EQ(refusal(true, true, false, ClassifySpec{}), StatusCode::kUnsupported);
  EXPECT_EQ(refusal(false, false, true, ClassifySpec{}), StatusCode::kOk);
  EXPECT_EQ(refusal(true, true, true, DecideSpec{.markers = {0}}), StatusCode::kUnsupported);
}

TEST(EngineLoop, ChecksTheMarkersOfADecision) {
  Fixture fixture({}, [&](EngineConfig* config) {
    config->generates = false;
    config->decides = true;
  });
  const auto param = [&](DecideSpec decide) {
    Request request = MakeRequest(4, 1);
    request.output = std::move(decide);
    RequestId id = 0;
    return fixture.engine->Submit(request, fixture.answers.Callback(), &id).param();
  };
  EXPECT_EQ(param({.markers = {1, 3}, .question_type = 2}), "");
  EXPECT_EQ(param({.markers = {}}), "markers");
  EXPECT_EQ(param({.markers = {1, 1}}), "markers");
  EXPECT_EQ(param({.markers = {-1}}), "markers");
  EXPECT_EQ(param({.markers = {4}}), "markers");
  EXPECT_EQ(param({.markers = {0}, .question_type = 3}), "question_type");
  const JointSchema schema = {{0, 2}, {0, 2}, {1, 3}, {1, 1}, {2, 4}};
  EXPECT_EQ(param({.markers = {1, 3}, .schema = schema}), "");
  const auto faulty = [&](const std::function<void(JointSchema*)>& change) {
    JointSchema changed = schema;
    change(&changed);
    return param({.markers = {1, 3}, .schema = std::move(changed)});
  };
  EXPECT_EQ(faulty([](JointSchema* s) { s->types[1] = 3; }), "schema");
  EXPECT_EQ(faulty([](JointSchema* s) { s->text_ends[0] = 0; }), "schema");
  EXPECT_EQ(faulty([](JointSchema* s) { s->text_ends[1] = 5; }), "schema");
  EXPECT_EQ(faulty([](JointSchema* s) { s->option_counts = {2, 1}; }), "schema");
  EXPECT_EQ(faulty([](JointSchema* s) { s->option_counts = {2, 0}; }), "schema");
  EXPECT_EQ(faulty([](JointSchema* s) { s->option_ends[0] = 1; }), "schema");
  EXPECT_EQ(faulty([](JointSchema* s) { s->option_ends.pop_back(); }), "schema");
}

TEST(EngineLoop, RefusesChoicesAndNamedTokensThatContradict) {
  Fixture fixture;
  const std::pair<const char*, std::function<void(Request*)>> cases[] = {
      {"logprob_token_ids", [](Request* r) { r->generate().logprob_token_ids = {1}; }},
      {"logprob_token_ids",
       [](Request* r) {
         r->generate().num_logprobs = 0;
         r->generate().logprob_token_ids = {1, 2, 1};
       }},
      {"choices",
       [](Request* r) {
         r->generate().choices = {{1, 2}, {}};
       }},
      {"choices",
       [](Request* r) {
         r->generate().choices = {{1, 2}, {1}, {1, 1}};
       }},
      {"choices",
       [](Request* r) {
         r->generate().choices = {{1}, {1}};
       }},
      {"choices", [](Request* r) { r->generate().choices = {std::vector<TokenId>(17, 1)}; }},
      {"choices", [](Request* r) { r->generate().choices.assign(256, {1}); }},
      {"choices",
       [](Request* r) {
         r->generate().choices = {{1, 2}};
         r->generate().stop_token_ids = {2};
       }},
  };
  for (const auto& [field, spoil] : cases) {
    Request request = MakeRequest(4, 16);
    spoil(&request);
    RequestId id = 0;
    const Status status = fixture.engine->Submit(request, fixture.answers.Callback(), &id);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.param(), field) << status.message();
  }
}

TEST(MakeEngine, NamesTheMember) {
  Fixture fixture;
  const auto refusal = [&](const std::function<void(EngineConfig*)>& spoil) {
    EngineConfig config = fixture.config;
    spoil(&config);
    return MakeEngine(config, fixture.executor.get(), &fixture.clock).status().param();
  };
  EXPECT_EQ(refusal([](EngineConfig* c) { c->vocab_size = 0; }), "vocab_size");
  EXPECT_EQ(refusal([](EngineConfig* c) { c->scheduler.num_kv_blocks = 0; }), "num_kv_blocks");
  EXPECT_EQ(refusal([](EngineConfig* c) { c->max_queued_requests = 0; }), "max_queued_requests");
  EXPECT_EQ(refusal([](EngineConfig* c) { c->scheduler.jct.aging = -1; }), "aging");
}

}  // namespace
}  // namespace skein
