#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace skein {
namespace {

bool AllAre(const AlignedBuffer& buffer, std::byte value) {
  return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                     [&](std::byte byte) { return byte == value; });
}

// Small buffers share mappings: they do not overlap, and the end of one does not touch another.
TEST(AlignedBuffer, BuffersSideBySideAreIndependent) {
  constexpr size_t kSizes[] = {1, 64, 4096, 4097, 100'000, 1'700'000, 5'000'000, 20'000'000};
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < 60; ++i) {
    AlignedBuffer buffer(kSizes[i % std::size(kSizes)]);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    ASSERT_TRUE(AllAre(buffer, std::byte{0})) << i;
    std::memset(buffer.data(), i + 1, buffer.size());
    buffers.push_back(std::move(buffer));
    if (i % 3 == 2) buffers[i - 1] = AlignedBuffer();
  }
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(AllAre(buffers[i], std::byte(i + 1))) << i;
}

TEST(AlignedBuffer, AnEmptyBufferHasNoMemory) {
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).size(), 0u);
}

}  // namespace
}  // namespace skein
