#include "base/paged_array.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace skein {
namespace {

int64_t NumResidentPages(PagedArray<uint64_t>& array) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(array.size() * sizeof(uint64_t) / page);
  EXPECT_EQ(mincore(array.data(), resident.size() * page, resident.data()), 0);
  return std::ranges::count_if(resident, [](unsigned char flags) { return (flags & 1) != 0; });
}

TEST(PagedArrayTest, PagesAreTakenByTheirFirstWrite) {
  PagedArray<uint64_t> array(size_t{1} << 20);  // four huge pages
  EXPECT_EQ(NumResidentPages(array), 0);
  array[40000] = 7;
  EXPECT_EQ(NumResidentPages(array), 1);
  EXPECT_EQ(array[40000], 7);
  EXPECT_EQ(std::ranges::count(array, 0), std::ssize(array) - 1);
}

TEST(PagedArrayTest, KeepsItsContentsWhenMoved) {
  PagedArray<int32_t> array(3);
  array[2] = 5;
  const PagedArray<int32_t> moved = std::move(array);
  EXPECT_EQ(std::vector<int32_t>(moved.begin(), moved.end()), (std::vector<int32_t>{0, 0, 5}));
}

}  // namespace
}  // namespace skein
