#include "kernels/kv_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "base/aligned_buffer.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;

float ElementAt(const std::byte* base, DType dtype, size_t index) {
  float f32;
  Bf16 bf16;
  std::memcpy(&f32, base + 4 * index * (dtype == DType::kF32), 4);
  std::memcpy(&bf16, base + 2 * index, 2);
  return dtype == DType::kF32 ? f32 : ToFloat(bf16);
}

// Reads K and V of a block in the order that is drawn in the header.
TEST(KvLayoutTest, StoresWhereTheHeaderSays) {
  RandomValues random;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t d : {7, 8, 20, 64, 80}) {
      const KvLayout layout = {dtype, 1, 1, 1, d};
      AlignedBuffer memory(layout.total_bytes());
      const std::vector<float> k = random.Floats(size_t{32} * d, dtype, Range::kPlain);
      const std::vector<float> v = random.Floats(size_t{32} * d, dtype, Range::kPlain);
      const testing::TypedArray k_typed(k, dtype), v_typed(v, dtype);
      for (int32_t slot = 0; slot < 32; ++slot) {
        layout.StoreK(memory.data(), slot, k_typed.At(slot * d));
        layout.StoreV(memory.data(), 31 - slot, v_typed.At((31 - slot) * d));
      }
      const int32_t group = dtype == DType::kBf16 ? 2 : 1;
      const int32_t padded = layout.head_dim_padded();
      const auto value = [&](const std::vector<float>& from, int32_t slot, int32_t i) {
        return i < d ? from[slot * d + i] : 0.0f;
      };
      size_t index = 0;
      for (int32_t keys = 0; keys < 32; keys += 16) {
        for (int32_t i = 0; i < padded; i += group) {
          for (int32_t key = keys; key < keys + 16; ++key) {
            for (int32_t j = 0; j < group; ++j, ++index) {
              ASSERT_EQ(ElementAt(memory.data(), dtype, index), value(k, key, i + j));
            }
          }
        }
      }
      EXPECT_EQ(index * SizeOf(dtype), layout.k_bytes());
      index = 0;
      const std::byte* v_base = memory.data() + layout.k_bytes();
      for (int32_t panel = 0; panel < padded; panel += 16) {
        for (int32_t key = 0; key < 32; key += group) {
          for (int32_t i = panel; i < panel + 16; ++i) {
            for (int32_t j = 0; j < group; ++j, ++index) {
              ASSERT_EQ(ElementAt(v_base, dtype, index), value(v, key + j, i));
            }
          }
        }
      }
      EXPECT_EQ(index * SizeOf(dtype), layout.k_bytes());
      for (int32_t slot = 0; slot < 32; ++slot) {
        std::vector<std::byte> loaded(d * SizeOf(dtype));
        layout.LoadK(memory.data(), slot, loaded.data());
        EXPECT_EQ(std::memcmp(loaded.data(), k_typed.At(slot * d), loaded.size()), 0);
      }
    }
  }
}

// Threads may store to adjacent slots at the same time, so a store must change only its own bytes.
TEST(KvLayoutTest, AStoreKeepsTheOtherSlots) {
  RandomValues random;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t d : {7, 20, 64}) {
      const KvLayout layout = {dtype, 1, 1, 1, d};
      const size_t bytes = layout.total_bytes();
      const testing::TypedArray values(random.Floats(size_t(d), dtype, Range::kPlain), dtype);
      for (const bool is_k : {true, false}) {
        // Each byte is changed by the store of exactly one slot.
        std::vector<int> num_changes(bytes, 0);
        for (int32_t slot = 0; slot < kKvBlockTokens; ++slot) {
          std::vector<bool> changed(bytes, false);
          for (const int fill : {0, 255}) {
            AlignedBuffer memory(bytes);
            std::memset(memory.data(), fill, bytes);
            is_k ? layout.StoreK(memory.data(), slot, values.data())
                 : layout.StoreV(memory.data(), slot, values.data());
            for (size_t i = 0; i < bytes; ++i) {
              if (memory.data()[i] != static_cast<std::byte>(fill)) changed[i] = true;
            }
          }
          for (size_t i = 0; i < bytes; ++i) num_changes[i] += changed[i];
        }
        size_t num_stored = 0;
        for (const int count : num_changes) {
          EXPECT_LE(count, 1);
          num_stored += count;
        }
        EXPECT_EQ(num_stored, size_t{32} * d * SizeOf(dtype));
      }
    }
  }
}

int8_t Int8At(const std::byte* base, size_t index) {
  return static_cast<int8_t>(std::to_integer<int>(base[index]) - 128);
}

// Each slot has values and scales of its own, which say where they come from.
TEST(KvLayoutTest, StoresInt8WhereTheHeaderSays) {
  for (int32_t d : {7, 20, 64, 80}) {
    const KvLayout layout = {DType::kInt8, 1, 1, 1, d};
    const int32_t padded = layout.head_dim_padded();
    AlignedBuffer memory(layout.total_bytes());
    const auto value = [](int32_t slot, int32_t i) {
      return static_cast<int8_t>((31 * slot + 7 * i) % 255 - 127);
    };
    const auto scale = [](int32_t slot, int32_t block) { return 1.0f + slot + 100.0f * block; };
    for (int32_t slot = 0; slot < 32; ++slot) {
      std::vector<int8_t> k(padded), v(padded);
      std::vector<float> scales;
      for (int32_t i = 0; i < d; ++i) {
        k[i] = value(slot, i);
        v[i] = value(slot, i + 1);
      }
      for (int32_t block = 0; block < padded / 32; ++block) scales.push_back(scale(slot, block));
      layout.StoreInt8K(memory.data(), slot, k.data(), scales.data());
      layout.StoreInt8V(memory.data(), slot, v.data(), -scale(slot, 0));
    }
    const std::byte* at = memory.data();
    for (int32_t keys = 0; keys < 32; keys += 16) {
      for (int32_t quad = 0; quad < padded; quad += 4) {
        for (int32_t key = keys; key < keys + 16; ++key) {
          for (int32_t i = quad; i < quad + 4; ++i, ++at) {
            ASSERT_EQ(Int8At(at, 0), i < d ? value(key, i) : 0) << d << ": " << key << ", " << i;
          }
        }
      }
      for (int32_t block = 0; block < padded / 32; ++block) {
        for (int32_t key = keys; key < keys + 16; ++key, at += sizeof(float)) {
          ASSERT_EQ(ElementAt(at, DType::kF32, 0), scale(key, block));
        }
      }
    }
    ASSERT_EQ(at, memory.data() + layout.k_bytes());
    for (int32_t panel = 0; panel < padded; panel += 16) {
      for (int32_t quad = 0; quad < 32; quad += 4) {
        for (int32_t i = panel; i < panel + 16; ++i) {
          for (int32_t key = quad; key < quad + 4; ++key, ++at) {
            if (i >= d) continue;
            ASSERT_EQ(Int8At(at, 0), value(key, i + 1)) << d << ": " << key << ", " << i;
          }
        }
      }
    }
    for (int32_t key = 0; key < 32; ++key, at += sizeof(float)) {
      ASSERT_EQ(ElementAt(at, DType::kF32, 0), -scale(key, 0));
    }
    EXPECT_EQ(at, memory.data() + layout.head_bytes());
  }
}

// As the two tests that are beside this one, for int8: a store changes the bytes of its own slot,
// and a copy of slots equals their stores.
TEST(KvLayoutTest, Int8SlotsAreApart) {
  for (int32_t d : {7, 20, 64, 80}) {
    const KvLayout layout = {DType::kInt8, 1, 1, 1, d};
    const size_t bytes = layout.total_bytes();
    const auto store = [&](std::byte* base, int32_t slot, int fill) {
      const std::vector<int8_t> q(layout.head_dim_padded(), static_cast<int8_t>(fill + slot));
      const std::vector<float> scales(layout.head_dim_padded() / 32, fill + 0.25f * slot);
      layout.StoreInt8K(base, slot, q.data(), scales.data());
      layout.StoreInt8V(base, slot, q.data(), -scales[0]);
    };
    AlignedBuffer once(bytes), changed(bytes);
    for (int32_t slot = 0; slot < 32; ++slot) store(once.data(), slot, 1);
    for (int32_t slot = 0; slot < 32; ++slot) {
      std::memcpy(changed.data(), once.data(), bytes);
      store(changed.data(), slot, 70);
      EXPECT_NE(std::memcmp(changed.data(), once.data(), bytes), 0);
      store(changed.data(), slot, 1);
      EXPECT_EQ(std::memcmp(changed.data(), once.data(), bytes), 0) << d << ", slot " << slot;
    }
    for (int32_t num_slots = 0; num_slots <= 32; ++num_slots) {
      AlignedBuffer to(bytes), want(bytes);
      for (int32_t slot = 0; slot < 32; ++slot) {
        store(to.data(), slot, 70);
        store(want.data(), slot, slot < num_slots ? 1 : 70);
      }
      layout.CopySlots(once.data(), to.data(), num_slots);
      ASSERT_EQ(std::memcmp(to.data(), want.data(), bytes), 0) << d << ", " << num_slots;
    }
  }
}

// Copying slots of one block over another equals storing the same slots there directly.
TEST(KvLayoutTest, CopiesSlots) {
  RandomValues random;
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    for (int32_t d : {8, 20, 64, 80}) {
      const KvLayout layout = {dtype, 1, 3, 1, d};
      const testing::TypedArray ones(random.Floats(size_t{64} * d, dtype, Range::kPlain), dtype);
      const testing::TypedArray others(random.Floats(size_t{64} * d, dtype, Range::kPlain), dtype);
      const auto store = [&](std::byte* base, int32_t slot, const testing::TypedArray& values) {
        layout.StoreK(base, slot, values.At(slot * d));
        layout.StoreV(base, slot, values.At((32 + slot) * d));
      };
      for (int32_t num_slots = 0; num_slots <= 32; ++num_slots) {
        AlignedBuffer memory(layout.total_bytes());
        std::byte* one = memory.data();
        std::byte* other = one + layout.head_bytes();
        std::byte* want = other + layout.head_bytes();
        for (int32_t slot = 0; slot < 32; ++slot) {
          store(one, slot, ones);
          store(other, slot, others);
          store(want, slot, slot < num_slots ? ones : others);
        }
        layout.CopySlots(one, other, num_slots);
        ASSERT_EQ(std::memcmp(other, want, layout.head_bytes()), 0)
            << SizeOf(dtype) << " " << d << " " << num_slots;
      }
    }
  }
}

TEST(KvLayoutTest, PartsTileTheMemory) {
  for (const bool contiguous : {false, true}) {
    const KvLayout layout = {DType::kBf16, 3, 5, 2, 20, contiguous};
    std::set<size_t> offsets;
    for (int32_t layer = 0; layer < 3; ++layer) {
      for (int32_t block = 0; block < 5; ++block) {
        for (int32_t head = 0; head < 2; ++head) offsets.insert(layout.Offset(layer, block, head));
      }
    }
    EXPECT_EQ(offsets.size(), 30u);
    size_t expected = 0;
    for (size_t offset : offsets) {
      EXPECT_EQ(offset, expected);
      expected += layout.head_bytes();
    }
    EXPECT_EQ(expected, layout.total_bytes());
    EXPECT_EQ(layout.Offset(2, 4, 1), layout.Offset(2, 0, 1) + 4 * layout.block_stride());
  }
}

TEST(KvLayoutTest, BlocksOfAHeadFollowOneAnotherWhereItIsContiguous) {
  const KvLayout layout = {DType::kBf16, 3, 5, 2, 20, true};
  EXPECT_EQ(layout.Offset(1, 3, 1), layout.Offset(1, 2, 1) + layout.head_bytes());
}

}  // namespace
}  // namespace skein
