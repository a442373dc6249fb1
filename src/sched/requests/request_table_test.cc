#include "sched/requests/request_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace skein {
namespace {

using ::testing::ElementsAre;

class RequestTableTest : public ::testing::Test {
 protected:
  // Adds a request with `num_sequences` running sequences.
  RequestRecord* Add(RequestId id, int64_t rank, int32_t num_sequences = 1) {
    auto record = std::make_unique<RequestRecord>();
    record->id = id;
    record->arrival = table_.num_arrivals();
    record->urgency.rank = rank;
    record->num_live = num_sequences;
    record->live.assign(num_sequences, true);
    RequestRecord* request = record.get();
    for (int32_t i = 0; i < num_sequences; ++i) {
      record->sequences.push_back(std::make_unique<Sequence>(request, i, PrefixScope{}));
      record->sequences.back()->state = SequenceState::kDecoding;
    }
    table_.Add(std::move(record));
    for (const auto& sequence : request->sequences) table_.InsertRunning(sequence.get());
    return request;
  }
  static Sequence* First(RequestRecord* request) { return request->sequences.front().get(); }

  RequestTable table_;
};

TEST_F(RequestTableTest, RunningSequencesAreInTheOrderOfTheirKeys) {
  RequestRecord* a = Add(7, 5);
  RequestRecord* b = Add(8, 3);
  RequestRecord* c = Add(9, 5);
  EXPECT_THAT(table_.running(), ElementsAre(First(b), First(a), First(c)));
  table_.EraseRunning(First(a));
  EXPECT_THAT(table_.running(), ElementsAre(First(b), First(c)));
  table_.InsertRunning(First(a));
  table_.CheckIntegrity();
  EXPECT_EQ(table_.num_arrivals(), 3u);
}

TEST_F(RequestTableTest, SamplesOfARequestCountOnce) {
  Add(1, 0, 3);
  Add(2, 0, 2);
  EXPECT_EQ(table_.NumRunningRequests(), 2);
  EXPECT_EQ(table_.NumLiveRequests(), 2);
}

TEST_F(RequestTableTest, AdaptersRunAndWait) {
  const auto bits = [this] {
    EngineStats stats;
    table_.AddAdapters(&stats);
    return std::pair(stats.running_adapters, stats.waiting_adapters);
  };
  Add(1, 0);
  EXPECT_EQ(bits(), std::pair(uint64_t{0}, uint64_t{0}));
  const auto add = [this](RequestId id, int32_t adapter, int32_t num_running) {
    auto record = std::make_unique<RequestRecord>();
    record->id = id;
    record->arrival = table_.num_arrivals();
    record->request.adapter_id = adapter;
    RequestRecord* request = record.get();
    for (int32_t i = 0; i < num_running; ++i) {
      record->sequences.push_back(std::make_unique<Sequence>(request, i, PrefixScope{}));
      record->sequences.back()->state = SequenceState::kDecoding;
    }
    table_.Add(std::move(record));
    for (const auto& sequence : request->sequences) table_.InsertRunning(sequence.get());
    return request;
  };
  RequestRecord* running = add(2, 1, 2);
  add(3, 64, 0);
  add(4, 65, 1);  // beyond the adapters that are shown
  EXPECT_EQ(bits(), std::pair(uint64_t{1}, uint64_t{1} << 63));
  add(5, 1, 0);
  EXPECT_EQ(bits(), std::pair(uint64_t{1}, uint64_t{1} << 63 | 1));
  for (const auto& sequence : running->sequences) sequence->state = SequenceState::kFinished;
  table_.NoteEnded(2);
  table_.EraseEndedRunning();
  table_.NoteEnded(3);
  EXPECT_EQ(bits(), std::pair(uint64_t{0}, uint64_t{1}));
}

TEST_F(RequestTableTest, ARequestIsForgottenOnceItIsInNoStep) {
  RequestRecord* request = Add(4, 0);
  First(request)->in_step = true;
  First(request)->state = SequenceState::kFinished;
  request->live[0] = false;
  request->num_live = 0;
  table_.NoteEnded(4);
  table_.EraseEndedRunning();
  EXPECT_TRUE(table_.running().empty());
  EXPECT_EQ(table_.NumLiveRequests(), 0);
  table_.ForgetEnded();
  EXPECT_EQ(table_.Find(4), request);  // the step still points to the request
  First(request)->in_step = false;
  table_.ForgetEnded();
  EXPECT_EQ(table_.Find(4), nullptr);
  EXPECT_TRUE(table_.empty());
}

}  // namespace
}  // namespace skein
