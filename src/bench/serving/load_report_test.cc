#include "bench/serving/load_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace skein {
namespace {

LoadRecord Record(TimeUs ttft_us, TimeUs e2el_us, int64_t output_tokens) {
  LoadRecord record;
  record.ok = true;
  record.ttft_us = ttft_us;
  record.e2el_us = e2el_us;
  record.prompt_tokens = 10;
  record.output_tokens = output_tokens;
  return record;
}

// The expected numbers are numpy's: mean, median, std, percentile(., [90, 95, 99]).
TEST(SummarizeTest, EqualsNumpy) {
  const Distribution d = Summarize({3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5});
  EXPECT_NEAR(d.mean, 3.95, 1e-12);
  EXPECT_NEAR(d.median, 3.75, 1e-12);
  EXPECT_NEAR(d.std, 2.328626204439004, 1e-12);
  EXPECT_NEAR(d.p90, 6.3, 1e-12);
  EXPECT_NEAR(d.p95, 7.65, 1e-12);
  EXPECT_NEAR(d.p99, 8.73, 1e-12);
}

TEST(SummarizeTest, SmallSamples) {
  EXPECT_EQ(Summarize({}).mean, 0);
  EXPECT_EQ(Summarize({}).p99, 0);
  const Distribution one = Summarize({7});
  EXPECT_EQ(one.mean, 7);
  EXPECT_EQ(one.median, 7);
  EXPECT_EQ(one.std, 0);
  EXPECT_EQ(one.p99, 7);
  EXPECT_NEAR(Summarize({1, 2}).p99, 1.99, 1e-12);
}

TEST(SummarizeTest, MedianOfAnEvenCountIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
}

TEST(SummarizeTest, AMeanThatOneOutlierDoesNotMove) {
  EXPECT_EQ(MeanButOutlier({}), 0);
  EXPECT_EQ(MeanButOutlier({3}), 3);
  EXPECT_EQ(MeanButOutlier({1, 3}), 2);
  EXPECT_EQ(MeanButOutlier({2, 2, 5}), 2);
  EXPECT_EQ(MeanButOutlier({4, 1e9, 3, 2, 4}), 3.4);  // the mean of 4, 4, 3, 2, 4
  EXPECT_EQ(MeanButOutlier({6, 2, 2, 6}), 4);         // a value that occurs twice counts
}

TEST(SummarizeTest, QuantilesAreMonotoneAndBounded) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<double> values(1 + random() % 50);
  for (double& value : values) value = static_cast<double>(random() % 1000);
  std::sort(values.begin(), values.end());
  double last = values.front();
  for (int i = 0; i <= 100; ++i) {
    const double value = Quantile(values, i / 100.0);
    EXPECT_GE(value, last - 1e-9);
    last = value;
  }
  EXPECT_EQ(last, values.back());
  EXPECT_EQ(Quantile(values, 0), values.front());
}

TEST(LoadReportTest, Rates) {
  std::vector<LoadRecord> records = {Record(100'000, 500'000, 5), Record(200'000, 200'000, 1),
                                     Record(300'000, 1'000'000, 8)};
  records[0].itl_us = {100'000, 100'000, 100'000, 100'000};
  records[1].cached_tokens = 4;
  records.push_back({});
  records.back().error = "no answer";
  const LoadReport report = MakeLoadReport(records, 2'000'000, {});
  EXPECT_EQ(report.total.completed, 3);
  EXPECT_EQ(report.total.failed, 1);
  EXPECT_EQ(report.total.input_tokens, 30);
  EXPECT_EQ(report.total.output_tokens, 14);
  EXPECT_EQ(report.total.cached_tokens, 4);
  EXPECT_DOUBLE_EQ(report.total.request_throughput, 1.5);
  EXPECT_DOUBLE_EQ(report.total.input_throughput, 15);
  EXPECT_DOUBLE_EQ(report.total.output_throughput, 7);
  EXPECT_DOUBLE_EQ(report.total.total_token_throughput, 22);
  EXPECT_DOUBLE_EQ(report.total.ttft_ms.mean, 200);
  // TPOT is 400 ms over 4 tokens and 700 ms over 7. An answer with a single token has no TPOT.
  EXPECT_DOUBLE_EQ(report.total.tpot_ms.mean, 100);
  EXPECT_DOUBLE_EQ(report.total.itl_ms.median, 100);
  EXPECT_FALSE(report.total.request_goodput.has_value());
  EXPECT_TRUE(report.classes.empty());
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_EQ(report.errors[0], (std::pair<std::string, int64_t>("no answer", 1)));
}

TEST(LoadReportTest, GoodputNeedsEveryTarget) {
  std::vector<LoadRecord> records = {Record(100'000, 500'000, 5), Record(300'000, 400'000, 2),
                                     Record(100'000, 2'000'000, 3)};
  GoodputTargets goodput;
  goodput.ttft_ms = 200;
  EXPECT_DOUBLE_EQ(*MakeLoadReport(records, 1'000'000, goodput).total.request_goodput, 2);
  goodput.tpot_ms = 100;  // the third request takes 950 ms per token
  EXPECT_DOUBLE_EQ(*MakeLoadReport(records, 1'000'000, goodput).total.request_goodput, 1);
  goodput.e2el_ms = 499;
  EXPECT_DOUBLE_EQ(*MakeLoadReport(records, 1'000'000, goodput).total.request_goodput, 0);
}

TEST(LoadReportTest, OwnDeadlinesAndClasses) {
  std::vector<LoadRecord> records;
  for (int i = 0; i < 4; ++i) {
    records.push_back(Record(100'000 * (i + 1), 1'000'000, 1));
    records.back().request_class = i < 3 ? "text" : "file";
    records.back().slo_ttft_us = i < 3 ? 200'000 : 1'000'000;
  }
  const LoadReport report = MakeLoadReport(records, 1'000'000, {});
  EXPECT_DOUBLE_EQ(*report.total.request_goodput, 3);
  EXPECT_DOUBLE_EQ(*report.total.slo_attainment, 0.75);
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[0].request_class, "file");
  EXPECT_EQ(report.classes[1].completed, 3);
  EXPECT_NEAR(*report.classes[1].slo_attainment, 2.0 / 3, 1e-12);
}

TEST(LoadReportTest, FailedRequestsLowerTheAttainment) {
  std::vector<LoadRecord> records = {Record(1, 1, 1), {}};
  records[0].slo_ttft_us = records[1].slo_ttft_us = 1000;
  EXPECT_DOUBLE_EQ(*MakeLoadReport(records, 1'000'000, {}).total.slo_attainment, 0.5);
}

TEST(LoadReportTest, JsonHasTheFieldNamesOfTheField) {
  const auto json = LoadReportToJson(MakeLoadReport({Record(1, 2, 3)}, 1'000'000, {}));
  for (const char* name : {"duration", "completed", "failed", "total_input_tokens",
                           "total_output_tokens", "request_throughput", "request_goodput",
                           "input_throughput", "output_throughput", "total_token_throughput"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  for (const char* statistic : {"mean_", "median_", "std_", "p90_", "p95_", "p99_"}) {
    for (const char* name : {"ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"}) {
      EXPECT_TRUE(json.contains(std::string(statistic) + name)) << statistic << name;
    }
  }
  EXPECT_TRUE(json["request_goodput"].is_null() && json["goodput"].is_null());
  EXPECT_TRUE(json["slo_attainment"].is_null());
}

TEST(LoadReportTest, ADeadlinePerTokenIsOneOfItsOwn) {
  std::vector<LoadRecord> records = {Record(1000, 101'000, 11), Record(1000, 101'000, 11)};
  records[0].slo_tpot_us = 10'000;
  records[1].slo_tpot_us = 9'999;
  const auto json = LoadReportToJson(MakeLoadReport(records, 500'000, {}));
  EXPECT_EQ(json["goodput"], 2.0);
  EXPECT_EQ(json["goodput"], json["request_goodput"]);
  EXPECT_EQ(json["slo_attainment"], 0.5);
  EXPECT_EQ(json["tpot_attainment"], 0.5);
  EXPECT_TRUE(json["ttft_attainment"].is_null());
}

TEST(LoadReportTest, EachKindOfDeadlineIsCountedApart) {
  std::vector<LoadRecord> records = {Record(1000, 101'000, 11), Record(3000, 103'000, 11), {}};
  for (LoadRecord& record : records) record.slo_ttft_us = 2000;
  records[1].slo_tpot_us = 10'000;
  const LoadFigures figures = MakeLoadReport(records, 1'000'000, {}).total;
  EXPECT_DOUBLE_EQ(*figures.ttft_attainment, 1.0 / 3);
  EXPECT_DOUBLE_EQ(*figures.tpot_attainment, 1);
  EXPECT_DOUBLE_EQ(*figures.slo_attainment, 1.0 / 3);
}

TEST(ParseGoodputTest, AcceptsAndRefuses) {
  const auto goodput = ParseGoodput({"ttft:250", "e2el:1000.5"});
  ASSERT_TRUE(goodput.ok());
  EXPECT_EQ(goodput.value().ttft_ms, 250);
  EXPECT_EQ(goodput.value().tpot_ms, std::nullopt);
  EXPECT_EQ(goodput.value().e2el_ms, 1000.5);
  for (const char* bad : {"ttft", "ttft:", "ttft:0", "ttft:-1", "ttft:1x", "itl:5", "ttft:inf"}) {
    EXPECT_FALSE(ParseGoodput({bad}).ok()) << bad;
  }
  EXPECT_FALSE(ParseGoodput({"ttft:1", "ttft:2"}).ok());
}

}  // namespace
}  // namespace skein
