#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "testing/isa_emulation.h"
#include "testing/isas.h"
#include "testing/random_values.h"

namespace skein {
namespace {

using testing::RandomValues;
using testing::Range;
using testing::SameBits;
using testing::TypedArray;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The keys and values of one sequence, and the ids of its blocks.
struct Sequence {
  std::vector<float> k, v;  // [num_keys, head_dim]
  std::vector<int32_t> block_table;
};

// A paged memory of which one layer and one head are in use. In a sequence's own blocks, V behind
// the last key holds `rest_of_v`. All other unused memory holds NaN; in int8, scales of NaN.
class PagedMemory {
 public:
  PagedMemory(RandomValues& random, DType dtype, int32_t head_dim, int32_t num_blocks,
              float rest_of_v)
      : layout{dtype, 2, num_blocks, 2, head_dim},
        row_type(dtype != DType::kInt8  ? dtype
                 : random.Integer(0, 1) ? DType::kF32
                                        : DType::kBf16),
        random_(random),
        head_(random.Integer(0, 1)),
        rest_of_v_(rest_of_v),
        memory_(layout.total_bytes()),
        free_(num_blocks) {
    std::iota(free_.begin(), free_.end(), 0);
    for (size_t i = free_.size() - 1; i > 0; --i) {
      std::swap(free_[i], free_[random.Integer(0, static_cast<int32_t>(i))]);
    }
    const std::vector<float> nan(head_dim, kNaN);
    for (int32_t block : free_) {
      for (int32_t head = 0; head < 2; ++head) Fill(block, head, nan, nan);
    }
  }

  // Makes a sequence of `num_keys` keys. Its first `shared_blocks` blocks are blocks of `parent`.
  Sequence Make(int32_t num_keys, const Sequence& parent = {}, int32_t shared_blocks = 0) {
    const int32_t d = layout.head_dim, shared_keys = shared_blocks * kKvBlockTokens;
    Sequence s;
    s.block_table.assign(parent.block_table.begin(), parent.block_table.begin() + shared_blocks);
    s.k.assign(parent.k.begin(), parent.k.begin() + shared_keys * d);
    s.v.assign(parent.v.begin(), parent.v.begin() + shared_keys * d);
    const size_t count = size_t(num_keys - shared_keys) * d;
    const std::vector<float> k = random_.Floats(count, row_type, Range::kPlain);
    const std::vector<float> v = random_.Floats(count, row_type, Range::kExtreme);
    s.k.insert(s.k.end(), k.begin(), k.end());
    s.v.insert(s.v.end(), v.begin(), v.end());
    for (int32_t key = shared_keys; key < num_keys; ++key) {
      if (key % kKvBlockTokens == 0) {
        s.block_table.push_back(free_.back());
        Fill(free_.back(), head_, std::vector<float>(d, kNaN), std::vector<float>(d, rest_of_v_));
        free_.pop_back();
      }
      Store(memory_.data() + layout.Offset(1, s.block_table.back(), head_), key % kKvBlockTokens,
            &s.k[size_t(key) * d], &s.v[size_t(key) * d]);
    }
    return s;
  }

  const std::byte* kv() const { return memory_.data() + layout.Offset(1, 0, head_); }

  const KvLayout layout;
  const DType row_type;  // of the queries and results

 private:
  void Fill(int32_t block, int32_t head, const std::vector<float>& k, const std::vector<float>& v) {
    for (int32_t slot = 0; slot < kKvBlockTokens; ++slot) {
      Store(memory_.data() + layout.Offset(1, block, head), slot, k.data(), v.data());
    }
  }

  // Stores k and v [head_dim].
  void Store(std::byte* base, int32_t slot, const float* k, const float* v) {
    const int32_t d = layout.head_dim;
    if (layout.dtype != DType::kInt8) {
      layout.StoreK(base, slot, TypedArray({k, k + d}, layout.dtype).data());
      layout.StoreV(base, slot, TypedArray({v, v + d}, layout.dtype).data());
      return;
    }
    std::vector<int8_t> q(layout.head_dim_padded());
    std::vector<float> scales;
    for (int32_t i = 0; i < d; i += 32) {
      scales.push_back(
          reference::Quantize({k + i, static_cast<size_t>(std::min(32, d - i))}, &q[i]));
    }
    layout.StoreInt8K(base, slot, q.data(), scales.data());
    const float scale = reference::Quantize({v, static_cast<size_t>(d)}, q.data());
    layout.StoreInt8V(base, slot, q.data(), scale);
  }

  RandomValues& random_;
  const int32_t head_;
  const float rest_of_v_;
  AlignedBuffer memory_;
  std::vector<int32_t> free_;  // blocks
};

// A row of a tile that is built later: the sequence and the keys that it attends to.
struct Row {
  const Sequence* sequence;
  int32_t num_keys;
  KeyWindow window = {};
  std::vector<uint32_t> visible = {};  // AttentionRow::visible; empty: null
  std::vector<float> terms = {};       // AttentionRow::terms; empty: null
  float sink = AttentionRow().sink;
};

class AttentionTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { kernels_ = MakeCpuKernels(GetParam()); }

  PagedMemory Memory(DType dtype, int32_t head_dim, int32_t num_keys) {
    // All classes but FMA multiply invisible values by zero. Therefore KV blocks are zeroed when
    // they are assigned.
    const bool fma = NumericClassOf(GetParam(), dtype) == NumericClass::kFma;
    return {random_, dtype, head_dim, num_keys / kKvBlockTokens + 4, fma ? kNaN : 0.0f};
  }

  DType AnyType() { return kTypes[random_.Integer(0, 2)]; }

  // Runs the rows as one tile. Sometimes the results overwrite q, and sometimes blocks from a
  // random one on get ids as blocks of the caller. Each row must equal the reference, which
  // computes one row alone.
  ::testing::AssertionResult Check(const PagedMemory& memory, const std::vector<Row>& rows,
                                   float q_scale, float soft_cap = 0) {
    const KvLayout& layout = memory.layout;
    const int32_t d = layout.head_dim;
    const float scale = 1.0f / std::sqrt(static_cast<float>(d));
    const DType dtype = memory.row_type;
    std::vector<float> q_values = random_.Floats(rows.size() * d, dtype, Range::kPlain);
    for (float& x : q_values) x *= q_scale;  // a power of two
    const TypedArray q(q_values, dtype);
    const bool in_place = random_.Integer(0, 1) == 1;
    TypedArray out(in_place ? q_values : std::vector<float>(rows.size() * d), dtype);
    const int32_t first_own = random_.Integer(0, layout.num_blocks);
    KvLayout call_layout = layout;
    call_layout.num_blocks = first_own + 1000;
    std::map<const Sequence*, std::vector<int32_t>> tables;
    for (const Row& row : rows) {
      std::vector<int32_t>& table = tables[row.sequence];
      table = row.sequence->block_table;
      for (int32_t& block : table) block += block < first_own ? 0 : 1000;
    }
    std::vector<AttentionRow> tile;
    std::vector<float> expected(rows.size() * d);
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto& [sequence, num_keys, window, bits, scores, sink] = rows[r];
      const uint32_t* const visible = bits.empty() ? nullptr : bits.data();
      const float* const terms = scores.empty() ? nullptr : scores.data();
      const std::vector<int32_t>& table = tables[sequence];
      tile.push_back({in_place ? out.At(r * d) : q.At(r * d), out.At(r * d), num_keys,
                      static_cast<int32_t>(table.size()), table.data(), window, visible, terms,
                      sink});
      reference::Attention(
          NumericClassOf(GetParam(), layout.dtype),
          {&q_values[r * d], sequence->k.data(), sequence->v.data(), num_keys, d, scale, dtype,
           window, visible, terms, sink, soft_cap, layout.dtype == DType::kInt8},
          &expected[r * d]);
    }
    kernels_->Attention({.rows = tile,
                         .kv = memory.kv(),
                         .own_kv = memory.kv() + first_own * layout.block_bytes(),
                         .layout = &call_layout,
                         .scale = scale,
                         .soft_cap = soft_cap,
                         .dtype = dtype});
    for (float x : expected) {
      if (std::isnan(x)) return ::testing::AssertionFailure() << "NaN expected: a useless case";
    }
    return SameBits(out.Values(), expected)
           << " (" << NameOf(layout.dtype) << ", head_dim " << d << ", " << rows.size()
           << " rows, first of " << rows[0].num_keys << " keys)";
  }

  static constexpr DType kTypes[] = {DType::kF32, DType::kBf16, DType::kInt8};

  const testing::IsaEmulation emulation_{GetParam()};
  RandomValues random_;
  std::unique_ptr<Kernels> kernels_;
};

TEST_P(AttentionTest, DecodeRowsEqualTheReference) {
  for (DType dtype : kTypes) {
    for (int32_t d : {8, 16, 20, 64, 80, 128, 256}) {
      for (int32_t keys : {1, 31, 32, 33, 63, 64, 65, 200, 256, 257}) {
        PagedMemory memory = Memory(dtype, d, keys);
        const Sequence s = memory.Make(keys);
        EXPECT_TRUE(Check(memory, std::vector<Row>(random_.Integer(1, 40), {&s, keys}), 1.0f));
      }
    }
  }
}

// As in prefill: consecutive positions of several heads in one tile.
TEST_P(AttentionTest, CausalTilesEqualTheReference) {
  for (DType dtype : kTypes) {
    for (int32_t last : {4, 16, 66, 130, 262, 2052}) {
      for (int32_t positions : {4, 16}) {
        if (positions > last) continue;
        PagedMemory memory = Memory(dtype, 24, last);
        const Sequence s = memory.Make(last);
        std::vector<Row> rows;
        for (int32_t i = 1; i <= positions; ++i) {
          rows.insert(rows.end(), 4, {&s, last - positions + i});
        }
        EXPECT_TRUE(Check(memory, rows, 1.0f));
      }
    }
  }
}

// Rows of any lengths, over several segments, with flat and peaked scores.
TEST_P(AttentionTest, RandomTilesEqualTheReference) {
  for (int i = 0; i < 24; ++i) {
    const DType dtype = AnyType();
    const int32_t max_keys = random_.Integer(1, i % 8 < 4 ? 300 : 5000);
    PagedMemory memory = Memory(dtype, i % 4 ? 8 : 40, max_keys);
    const Sequence s = memory.Make(max_keys);
    std::vector<Row> rows(random_.Integer(1, i % 3 ? 16 : kMaxQueryRows));
    for (Row& row : rows) row = {&s, random_.Integer(1, max_keys)};
    EXPECT_TRUE(Check(memory, rows, i % 3 == 0 ? 32.0f : 1.0f));
  }
}

// Each sequence shares a random number of blocks with the sequence before it, which makes trees of
// prefixes. Each row must have the bits that it has alone.
TEST_P(AttentionTest, RowsOfSharedPrefixesEqualTheReference) {
  for (int i = 0; i < 30; ++i) {
    const DType dtype = AnyType();
    const int32_t num_sequences = random_.Integer(2, 8);
    const int32_t max_keys = i % 5 == 0 ? 2500 : 300;
    PagedMemory memory = Memory(dtype, i % 2 ? 16 : 72, (max_keys + 32) * num_sequences);
    std::vector<Sequence> sequences;
    std::vector<Row> rows;
    sequences.push_back(memory.Make(random_.Integer(1, max_keys)));
    while (static_cast<int32_t>(sequences.size()) < num_sequences) {
      const Sequence& parent = sequences.back();
      const auto whole_blocks =
          static_cast<int32_t>(parent.k.size()) / memory.layout.head_dim / kKvBlockTokens;
      const int32_t shared = std::max(whole_blocks - random_.Integer(0, whole_blocks), 0);
      const int32_t keys = shared * kKvBlockTokens + random_.Integer(1, 100);
      sequences.push_back(memory.Make(keys, parent, shared));
    }
    for (const Sequence& s : sequences) {
      const auto keys = static_cast<int32_t>(s.k.size()) / memory.layout.head_dim;
      const int32_t tokens = std::min(random_.Integer(1, 4), keys);
      for (int32_t t = tokens - 1; t >= 0; --t) rows.insert(rows.end(), 2, {&s, keys - t});
    }
    EXPECT_TRUE(Check(memory, rows, 1.0f));
  }
}

// A sequence may end with the last key that it shares with its neighbours, in any segment, at the
// end of a step or within one. The other sequences walk on without it.
TEST_P(AttentionTest, RowsMayEndWhereOthersWalkOn) {
  for (const int32_t keys : {256, 2048, 2304, 2336, 4352}) {
    for (const bool first : {false, true}) {
      PagedMemory memory = Memory(DType::kBf16, 16, keys + 400);
      const Sequence longer = memory.Make(keys + 300);
      const Sequence shorter = memory.Make(keys, longer, keys / kKvBlockTokens);
      std::vector<Row> rows = {{&longer, keys + 299}, {&longer, keys + 300}};
      const std::vector<Row> more = {{&shorter, keys - 100}, {&shorter, keys}};
      rows.insert(first ? rows.begin() : rows.end(), more.begin(), more.end());
      EXPECT_TRUE(Check(memory, rows, 1.0f)) << keys << " keys, " << (first ? "first" : "last");
    }
  }
}

// Local attention: consecutive positions of a sequence, whose rows see keys before and after them.
TEST_P(AttentionTest, WindowsOfNeighboursEqualTheReference) {
  for (DType dtype : kTypes) {
    for (const int32_t keys : {5, 70, 300, 2200}) {
      for (const int32_t reach : {0, 1, 24, 64, 128}) {
        PagedMemory memory = Memory(dtype, 24, keys);
        const Sequence s = memory.Make(keys);
        const int32_t first = std::max(0, keys - random_.Integer(1, keys));
        std::vector<Row> rows;
        for (int32_t i = first; i < std::min(keys, first + kMaxQueryRows); ++i) {
          rows.push_back({&s, keys, {std::max(0, i - reach), i + reach + 1}});
        }
        EXPECT_TRUE(Check(memory, rows, 1.0f)) << "reach " << reach << ", from " << first;
      }
    }
  }
}

// Any windows: far apart, in different segments, and of sequences that share blocks.
TEST_P(AttentionTest, RandomWindowsEqualTheReference) {
  for (int i = 0; i < 32; ++i) {
    const DType dtype = AnyType();
    const int32_t max_keys = random_.Integer(2, i % 8 < 4 ? 600 : 5000);
    PagedMemory memory = Memory(dtype, i % 4 ? 8 : 40, 2 * max_keys + 100);
    const Sequence s = memory.Make(max_keys);
    const int32_t shared = random_.Integer(0, max_keys / kKvBlockTokens);
    const Sequence other = memory.Make(shared * kKvBlockTokens + 70, s, shared);
    std::vector<Row> rows(random_.Integer(1, i % 3 ? 16 : kMaxQueryRows));
    for (size_t r = 0; r < rows.size(); ++r) {
      const bool second = i % 3 == 1 && r >= rows.size() / 2;
      const int32_t most = second ? shared * kKvBlockTokens + 70 : max_keys;
      const int32_t keys = random_.Integer(1, most), begin = random_.Integer(0, keys - 1);
      rows[r] = {second ? &other : &s, keys, {begin, begin + random_.Integer(1, keys)}};
    }
    EXPECT_TRUE(Check(memory, rows, i % 3 == 0 ? 32.0f : 1.0f)) << "case " << i;
  }
}

// Rows that do not see some keys of their window: single keys, whole blocks, steps and segments.
TEST_P(AttentionTest, HiddenKeysEqualTheReference) {
  for (int i = 0; i < 48; ++i) {
    const DType dtype = AnyType();
    const int32_t max_keys = random_.Integer(2, i % 8 < 4 ? 600 : 5000);
    PagedMemory memory = Memory(dtype, i % 4 ? 8 : 40, max_keys);
    const Sequence s = memory.Make(max_keys);
    std::vector<Row> rows(random_.Integer(1, i % 3 ? 16 : kMaxQueryRows));
    for (size_t r = 0; r < rows.size(); ++r) {
      const int32_t keys = random_.Integer(1, max_keys), first = random_.Integer(0, keys - 1);
      rows[r] = {&s, keys, {first, keys + random_.Integer(0, 3)}};
      if (r % 4 == 3) continue;
      std::vector<uint32_t>& visible = rows[r].visible;
      visible.assign((keys + 31) / 32, 0);
      const auto see = [&](int32_t key) { visible[key / 32] |= 1u << (key % 32); };
      see(first);
      // Runs of keys with gaps between them, which may be longer than a segment.
      for (int32_t key = first; key < keys;) {
        const int32_t end = std::min(keys, key + random_.Integer(1, 1 << random_.Integer(0, 9)));
        for (; key < end; ++key) see(key);
        key += random_.Integer(1, 1 << random_.Integer(0, 12));
      }
    }
    EXPECT_TRUE(Check(memory, rows, i % 3 == 0 ? 32.0f : 1.0f)) << "case " << i;
  }
}

// Terms of the scores, with windows and hidden keys, of sequences that share blocks.
TEST_P(AttentionTest, TermsEqualTheReference) {
  for (int i = 0; i < 32; ++i) {
    const DType dtype = AnyType();
    const int32_t max_keys = random_.Integer(2, i % 8 < 4 ? 600 : 5000);
    PagedMemory memory = Memory(dtype, i % 4 ? 8 : 40, 2 * max_keys + 100);
    const Sequence s = memory.Make(max_keys);
    const int32_t shared = random_.Integer(0, max_keys / kKvBlockTokens);
    const Sequence other = memory.Make(shared * kKvBlockTokens + 70, s, shared);
    std::vector<Row> rows(random_.Integer(1, i % 3 ? 16 : kMaxQueryRows));
    for (size_t r = 0; r < rows.size(); ++r) {
      const bool second = i % 3 == 1 && r >= rows.size() / 2;
      const int32_t most = second ? shared * kKvBlockTokens + 70 : max_keys;
      const int32_t keys = i % 5 == 0 ? most : random_.Integer(1, most);
      rows[r] = {second ? &other : &s, keys};
      if (i % 4 == 1) rows[r].window.first = random_.Integer(0, keys - 1);
      if (i % 4 == 3) {
        rows[r].visible.assign((keys + 31) / 32, 0x9249'2493);
        rows[r].visible.back() &= ~0u >> (31 - (keys - 1) % 32);
      }
      rows[r].terms = random_.Floats((keys + 31) / 32 * 32, DType::kF32, Range::kPlain);
    }
    EXPECT_TRUE(Check(memory, rows, i % 3 == 0 ? 32.0f : 1.0f)) << "case " << i;
  }
}

// Sinks above, among and below the scores, of windows and of walks over several segments.
TEST_P(AttentionTest, SinksEqualTheReference) {
  for (int i = 0; i < 24; ++i) {
    const DType dtype = AnyType();
    const int32_t keys = random_.Integer(1, i % 8 < 4 ? 300 : 5000);
    PagedMemory memory = Memory(dtype, i % 4 ? 8 : 40, keys + 64);
    const Sequence s = memory.Make(keys);
    std::vector<Row> rows(random_.Integer(1, i % 3 ? 16 : kMaxQueryRows));
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r] = {&s, random_.Integer(1, keys)};
      if (i % 4 == 1) rows[r].window.first = random_.Integer(0, rows[r].num_keys - 1);
      constexpr float kSinks[] = {0, 3, -2, 9, 40, -40, 1000, -1000};
      if (r % 5 != 4) rows[r].sink = kSinks[random_.Integer(0, 7)] + random_.Float(Range::kPlain);
    }
    EXPECT_TRUE(Check(memory, rows, i % 3 == 0 ? 32.0f : 1.0f)) << "case " << i;
  }
}

// A sink takes its share of the weights: one with the score of the only key takes half, and one far
// above it takes all.
TEST_P(AttentionTest, SinksTakeTheirShare) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    constexpr int32_t kDim = 16;
    PagedMemory memory = Memory(dtype, kDim, 32);
    const Sequence s = memory.Make(1);
    const TypedArray q(std::vector<float>(kDim, 0.0f), dtype);
    for (const auto& [sink, share] : {std::pair(0.0f, 0.5f), {1000.0f, 0.0f}, {-1000.0f, 1.0f}}) {
      TypedArray out(std::vector<float>(kDim), dtype);
      const AttentionRow row = {.q = q.At(0),
                                .out = out.At(0),
                                .num_keys = 1,
                                .num_blocks = static_cast<int32_t>(s.block_table.size()),
                                .block_table = s.block_table.data(),
                                .sink = sink};
      kernels_->Attention({.rows = {&row, 1},
                           .kv = memory.kv(),
                           .own_kv = nullptr,
                           .layout = &memory.layout,
                           .scale = 1.0f});
      for (int32_t d = 0; d < kDim; ++d) {
        if (std::abs(s.v[d]) < 1e-30f) continue;  // flushed
        EXPECT_EQ(out.Values()[d], share * s.v[d]) << sink;
      }
    }
  }
}

// Capped scores: flat ones, ones near the cap and ones far beyond it, with terms and without, of
// tiles of every size.
TEST_P(AttentionTest, SoftCapsEqualTheReference) {
  for (int i = 0; i < 48; ++i) {
    const DType dtype = AnyType();
    const int32_t max_keys = random_.Integer(2, i % 8 < 4 ? 600 : 5000);
    PagedMemory memory = Memory(dtype, i % 4 ? 8 : 40, max_keys);
    const Sequence s = memory.Make(max_keys);
    std::vector<Row> rows(random_.Integer(1, i % 3 ? 16 : kMaxQueryRows));
    for (Row& row : rows) {
      const int32_t keys = i % 5 == 0 ? max_keys : random_.Integer(1, max_keys);
      row = {&s, keys};
      if (i % 4 == 1) row.window.first = random_.Integer(0, keys - 1);
      if (i % 6 == 5) {
        row.terms = random_.Floats((keys + 31) / 32 * 32, DType::kF32, Range::kPlain);
      }
    }
    const float cap = i % 3 == 0 ? 50.0f : i % 3 == 1 ? 0.7f : 3.0f;
    EXPECT_TRUE(Check(memory, rows, i % 4 < 2 ? 32.0f : 1.0f, cap)) << "case " << i;
  }
}

// Visibility bits that hide no key change nothing.
TEST_P(AttentionTest, VisibleBitsOfAllKeysAreNone) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    constexpr int32_t kDim = 16, kKeys = 2400;
    PagedMemory memory = Memory(dtype, kDim, kKeys);
    const Sequence s = memory.Make(kKeys);
    const TypedArray q(random_.Floats(kDim, dtype, Range::kPlain), dtype);
    const auto attend = [&](const std::vector<uint32_t>& bits) {
      TypedArray out(std::vector<float>(kDim), dtype);
      const AttentionRow row = {q.At(0),
                                out.At(0),
                                kKeys,
                                static_cast<int32_t>(s.block_table.size()),
                                s.block_table.data(),
                                {},
                                bits.empty() ? nullptr : bits.data()};
      kernels_->Attention(
          {.rows = {&row, 1}, .kv = memory.kv(), .layout = &memory.layout, .scale = 0.25f});
      return out.Values();
    };
    std::vector<uint32_t> bits(kKeys / 32, ~0u);
    EXPECT_TRUE(SameBits(attend(bits), attend({})));
    bits[40] = ~2u;
    EXPECT_FALSE(SameBits(attend(bits), attend({})));
  }
}

// A window that holds all existing keys has no effect, and the contents of a hidden key have none.
TEST_P(AttentionTest, WindowsHideKeysAndNothingElse) {
  for (DType dtype : {DType::kF32, DType::kBf16}) {
    constexpr int32_t kDim = 16, kKeys = 700;
    PagedMemory memory = Memory(dtype, kDim, kKeys);
    const Sequence s = memory.Make(kKeys);
    const TypedArray q(random_.Floats(kDim, dtype, Range::kPlain), dtype);
    const auto attend = [&](int32_t num_keys, KeyWindow window) {
      TypedArray out(std::vector<float>(kDim), dtype);
      const AttentionRow row = {q.At(0),
                                out.At(0),
                                num_keys,
                                static_cast<int32_t>(s.block_table.size()),
                                s.block_table.data(),
                                window};
      kernels_->Attention(
          {.rows = {&row, 1}, .kv = memory.kv(), .layout = &memory.layout, .scale = 0.25f});
      return out.Values();
    };
    EXPECT_TRUE(SameBits(attend(kKeys, {0, kKeys}), attend(kKeys, {})));
    EXPECT_TRUE(SameBits(attend(kKeys, {0, 600}), attend(600, {})));
    EXPECT_FALSE(SameBits(attend(kKeys, {1, kKeys}), attend(kKeys, {})));
    EXPECT_FALSE(SameBits(attend(kKeys, {100, 600}), attend(kKeys, {100, 601})));
  }
}

// Query rows lie in a tiled matrix, where the results replace them.
TEST_P(AttentionTest, RowsInTilesHaveTheBitsOfRows) {
  if (GetParam() != Isa::kAmx) GTEST_SKIP() << "takes plain rows alone";
  constexpr int32_t kRows = 5, kKeys = 70;
  for (const int32_t d : {64, 96, 256}) {
    PagedMemory memory = Memory(d == 96 ? DType::kInt8 : DType::kBf16, d, kKeys);
    const Sequence s = memory.Make(kKeys);
    const std::vector<float> values =
        random_.Floats(size_t{kRows} * d, DType::kBf16, Range::kPlain);
    std::vector<Bf16> q(size_t{kRows} * d), out(size_t{kRows} * d);
    std::vector<Bf16> tiles(size_t{kRowTileRows} * d);
    std::vector<AttentionRow> plain, tiled;
    const auto num_blocks = static_cast<int32_t>(s.block_table.size());
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t i = 0; i < d; ++i) {
        q[r * d + i] = tiles[RowTileIndex(r, i, d)] = ToBf16(values[r * d + i]);
      }
      const int32_t num_keys = kKeys - kRows + 1 + r;
      plain.push_back({&q[r * d], &out[r * d], num_keys, num_blocks, s.block_table.data()});
      Bf16* row = &tiles[RowTileIndex(r, 0, d)];
      tiled.push_back({row, row, num_keys, num_blocks, s.block_table.data()});
    }
    AttentionCall call = {.rows = plain,
                          .kv = memory.kv(),
                          .layout = &memory.layout,
                          .scale = 0.1f,
                          .dtype = DType::kBf16};
    kernels_->Attention(call);
    call.rows = tiled;
    call.piece_stride = kRowTileElements;
    kernels_->Attention(call);
    for (int32_t r = 0; r < kRows; ++r) {
      for (int32_t i = 0; i < d; ++i) {
        ASSERT_EQ(tiles[RowTileIndex(r, i, d)].bits, out[r * d + i].bits) << d << ": " << r;
      }
    }
  }
}

// Compares the reference with softmax in double. In bf16 the weights of the keys are rounded, each
// by at most 2^-9 of itself.
TEST(AttentionReferenceTest, IsSoftmaxAttention) {
  RandomValues random;
  const int32_t d = 16, n = 4500;
  const std::vector<float> q = random.Floats(d, DType::kBf16, Range::kPlain);
  const std::vector<float> k = random.Floats(n * d, DType::kBf16, Range::kPlain);
  const std::vector<float> v = random.Floats(n * d, DType::kBf16, Range::kPlain);
  double sum = 0, sum_of_sizes = 0;
  std::vector<double> acc(d);
  for (int32_t key = 0; key < n; ++key) {
    double score = 0;
    for (int32_t i = 0; i < d; ++i) score += double{q[i]} * k[key * d + i];
    const double p = std::exp(0.25 * score);
    sum += p;
    sum_of_sizes += p * std::abs(v[key * d]);
    for (int32_t i = 0; i < d; ++i) acc[i] += p * v[key * d + i];
  }
  std::vector<float> out(d);
  const auto input = [&](DType dtype) {
    return reference::AttentionInput{q.data(), k.data(), v.data(), n, d, 0.25f, dtype};
  };
  reference::Attention(NumericClass::kFma, input(DType::kF32), out.data());
  // The sums have 4500 terms near one that mostly cancel, so the tolerance is some hundred
  // roundings.
  for (int32_t i = 0; i < d; ++i) EXPECT_NEAR(out[i], acc[i] / sum, 200 * 0x1p-24);
  // The roundings of the weights, of their sum and of the result.
  const double rounding = 3 * 0x1p-9 * sum_of_sizes / sum;
  for (auto numeric_class : {NumericClass::kFma, NumericClass::kBf16, NumericClass::kAmx}) {
    reference::Attention(numeric_class, input(DType::kBf16), out.data());
    for (int32_t i = 0; i < d; ++i) EXPECT_NEAR(out[i], acc[i] / sum, rounding);
  }
}

// The matrix unit's code is tested on every machine that has the vector instructions around it:
// without the unit, the unit is emulated.
std::vector<Isa> IsasHereOrEmulated() {
  std::vector<Isa> isas = IsasHere();
  if (!CpuHas(Isa::kAmx) && CpuHas(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16")) {
    isas.push_back(Isa::kAmx);
  }
  return isas;
}

INSTANTIATE_TEST_SUITE_P(Here, AttentionTest, ::testing::ValuesIn(IsasHereOrEmulated()),
                         testing::IsaName);

}  // namespace
}  // namespace skein
