#include "cuda/device/fake_device.h"

#include <gtest/gtest.h>

#include <vector>

#include "cuda/kernels/launches.h"

namespace skein::cuda {
namespace {

Launch OneEmbedding(const int32_t* token, const float* table, float* x) {
  return EmbedLaunch(DType::kF32, false,
                     {.tokens = token, .table = table, .num_tokens = 1, .hidden = 2, .x = x});
}

TEST(FakeDevice, CommandsRunInOrderWhenTheyAreWaitedFor) {
  FakeDevice device;
  const Buffer memory = Buffer::Make(&device, Buffer::Place::kDevice, 64).value();
  auto* const on_device = memory.as<float>();
  float host[8] = {0, 0, 0, 0, 5, 6, 7, 8};  // token 0 as bits, then the table
  device.CopyToDevice(on_device, host, sizeof(host));
  device.Run(OneEmbedding(memory.as<int32_t>(), on_device + 4, on_device + 1));
  float back[2] = {};
  device.CopyToHost(back, on_device + 1, sizeof(back));
  const int64_t mark = device.Mark();
  EXPECT_EQ(back[0], 0);
  EXPECT_EQ(device.num_launches(), 1);
  EXPECT_EQ(device.num_launches_done(), 0);
  ASSERT_TRUE(device.Wait(mark).ok());
  EXPECT_EQ(device.num_launches_done(), 1);
  EXPECT_EQ(back[0], 5);
  EXPECT_EQ(back[1], 6);
}

TEST(FakeDevice, GraphsRunTheirLaunchesEachTime) {
  FakeDevice device;
  const int32_t token = 0;
  float table[2] = {1, 2};
  float first[2] = {}, second[2] = {};
  device.BeginGraph();
  device.Run(OneEmbedding(&token, table, first));
  device.Run(OneEmbedding(&token, first, second));
  const int32_t graph = device.EndGraph().value();
  EXPECT_EQ(device.num_launches(), 0);
  for (const float value : {1.0f, 7.0f}) {
    table[0] = value;
    device.RunGraph(graph);
    ASSERT_TRUE(device.WaitForAll().ok());
    EXPECT_EQ(second[0], value);
  }
  EXPECT_EQ(device.num_launches_done(), 4);
  EXPECT_EQ(device.num_graph_runs(), 2);
  device.FreeGraph(graph);
  EXPECT_EQ(device.num_graphs(), 0);
}

TEST(FakeDevice, MemoryRunsOut) {
  FakeDevice device({.memory_bytes = 1000});
  const Buffer most = Buffer::Make(&device, Buffer::Place::kDevice, 900).value();
  const Result<Buffer> more = Buffer::Make(&device, Buffer::Place::kDevice, 200);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(more.status().message(), "the device has 100 of 1000 bytes free; 200 are needed");
  EXPECT_EQ(device.bytes_in_use(), 900);
}

TEST(FakeDevice, CopiesARowOfEachLayer) {
  FakeDevice device;
  const std::vector<int32_t> matrices = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};  // [2, 3, 2]
  const Buffer memory = Buffer::Make(&device, Buffer::Place::kDevice, 48).value();
  device.CopyToDevice(memory.as<int32_t>(), matrices.data(), 48);
  const LayerRows rows = {
      .base = memory.as<int32_t>(), .row_bytes = 8, .num_rows = 3, .row = 1, .num_layers = 2};
  std::vector<int32_t> row(4), all(12);
  device.CopyToHost(row.data(), rows);
  ASSERT_TRUE(device.WaitForAll().ok());
  EXPECT_EQ(row, (std::vector<int32_t>{2, 3, 8, 9}));
  row = {20, 30, 80, 90};
  device.CopyToDevice(rows, row.data());
  device.CopyToHost(all.data(), memory.as<int32_t>(), 48);
  ASSERT_TRUE(device.WaitForAll().ok());
  EXPECT_EQ(all, (std::vector<int32_t>{0, 1, 20, 30, 4, 5, 6, 7, 80, 90, 10, 11}));
}

TEST(FakeDevice, ALostDeviceDoesNothingMore) {
  FakeDevice device({.launches_until_lost = 1});
  const int32_t token = 0;
  const float table[2] = {1, 2};
  float first[2] = {}, second[2] = {};
  device.Run(OneEmbedding(&token, table, first));
  EXPECT_TRUE(device.WaitForAll().ok());
  device.Run(OneEmbedding(&token, table, second));
  EXPECT_EQ(device.WaitForAll().code(), StatusCode::kUnavailable);
  float back = 0;
  device.CopyToHost(&back, first, sizeof(back));
  EXPECT_EQ(device.WaitForAll().code(), StatusCode::kUnavailable);
  EXPECT_EQ(first[1], 2);
  EXPECT_EQ(second[1], 0);
  EXPECT_EQ(back, 0);
}

}  // namespace
}  // namespace skein::cuda
