#pragma once

// The steps of keys and values that a block of the attention kernel has in shared memory. Copies
// run some steps ahead of their use. A stage holds K of 64 keys, and V's elements of the block's
// part of the head, in the panels of a KV block (KvLayout): rows of 16 words of 32 bits.
//
//   stage: K [4 panels of 16 keys][head words][16 keys]
//          V [2 KV blocks][panels of 16 elements][key words][16 elements]
//
// In the rows 2 and 3 of each four, the halves of 8 words have changed places. So the lanes of a
// warp, which read the same column of four adjacent rows, read from different banks.

#include <cstdint>

#include "cuda/kernels/args.h"
#include "cuda/kernels/attention/attention_rows.h"
#include "cuda/kernels/dialect.h"
#include "cuda/kernels/heads.h"
#include "cuda/kernels/products.h"

namespace skein::cuda::inline SKEIN_KERNEL_SIDE {

inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = 32 * kAttentionWarps;
inline constexpr int kKeyTiles = kKeysPerStep / 8;             // products, of 8 keys each
inline constexpr int kPanelWidth = 16;                         // words of a panel's row
inline constexpr int kKeyPanels = kKeysPerStep / kPanelWidth;  // of a step
inline constexpr int kStepBlocks = kKeysPerStep / kKvBlockTokens;
inline constexpr int kSegmentBlocks = kKeysPerSegment / kKvBlockTokens;

// The shared memory of a thread block without its stages of keys and values, which lie behind it.
template <typename T>
struct AttentionShared {
  static constexpr int kWeightWords = kKeysPerStep * static_cast<int>(sizeof(T)) / 4;
  const uint8_t*
      blocks[kSegmentBlocks];  // K of the segment's KV blocks; of some block, if no key is needed
  float maxima[kAttentionRows][kAttentionWarps];  // of a narrow tile: each warp's own keys
  // Those of a step, rounded to T. Four words more than needed: lanes read from different banks.
  uint32_t weights[kAttentionRows][kWeightWords + 4];
};

// The bytes that two blocks on a multiprocessor may have each, and one block on any GPU from sm_80.
inline constexpr int kAttentionSharedBytes = 99 << 10;

// Heads of kChunks times 8 words; kChunks = 0: of any width. A block computes 8 * kTiles elements
// of the values.
template <typename T, int kTiles_, int kChunks_, AttentionKind kKind_ = AttentionKind::kPlain>
struct AttentionShape {
  static constexpr int kTiles = kTiles_, kChunks = kChunks_;
  static constexpr AttentionKind kKind = kKind_;
  static constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
  static constexpr int kKeyWords = kKvBlockTokens / kPerWord;  // of a KV block, along its keys
  static constexpr int kMaxStages = 4;
  // That a multiprocessor of sm_90 holds at a time, for registers and shared memory.
  static constexpr int kBlocksPerMultiprocessor = kTiles == 8 && kChunks > 0 ? 3 : 2;

  constexpr explicit AttentionShape(int head_dim_padded)
      : head_words(kChunks > 0 ? kChunks * kMmaWords : head_dim_padded / kPerWord),
        panels(head_words * kPerWord / kPanelWidth < kTiles / 2
                   ? head_words * kPerWord / kPanelWidth
                   : kTiles / 2),
        k_words(kKeysPerStep * head_words),
        stage_words(k_words + kStepBlocks * panels * kKeyWords * kPanelWidth),
        stages(Stages(stage_words)) {}

  static constexpr int Stages(int words) {
    const int fit =
        (kAttentionSharedBytes - static_cast<int>(sizeof(AttentionShared<T>))) / (4 * words);
    return fit < kMaxStages ? fit : kMaxStages;
  }
  constexpr uint32_t shared_bytes() const {
    return static_cast<uint32_t>(sizeof(AttentionShared<T>)) +
           static_cast<uint32_t>(stages * stage_words) * 4;
  }
  constexpr int parts() const { return (head_words * kPerWord + 8 * kTiles - 1) / (8 * kTiles); }

  int head_words;  // of a key
  int panels;      // of V in a stage
  int k_words;     // of a stage
  int stage_words;
  int stages;
};

// Waits until at most `pending` groups of this thread are still being copied.
__device__ __forceinline__ void WaitForGroups(int pending) {
  switch (pending) {
    case 0:
      return WaitForCopies<0>();
    case 1:
      return WaitForCopies<1>();
    case 2:
      return WaitForCopies<2>();
    case 3:
      return WaitForCopies<3>();
    case 4:
      return WaitForCopies<4>();
    case 5:
      return WaitForCopies<5>();
    default:
      return WaitForCopies<6>();
  }
}

// The places of a lane's two columns, group and group + 8, in the rows quad and quad + 4 of eight
// rows of a panel.
struct PanelColumns {
  __device__ __forceinline__ explicit PanelColumns(const Lane& lane)
      : low(lane.quad * kPanelWidth + lane.group + (lane.quad >= 2 ? 8 : 0)),
        high(lane.quad * kPanelWidth + lane.group + (lane.quad >= 2 ? 0 : 8)) {}

  // Operands of the products with the panel's columns 0 to 7, and with columns 8 to 15.
  __device__ __forceinline__ void Read(const uint32_t* rows, uint32_t (&first)[2],
                                       uint32_t (&second)[2]) const {
    first[0] = rows[low];
    second[0] = rows[high];
    first[1] = rows[low + 4 * kPanelWidth];
    second[1] = rows[high + 4 * kPanelWidth];
  }

  int low, high;
};

// K of the KV block `index` of a segment, for a walk over the keys [begin, end); of some block, if
// the walk does not need it.
__device__ __forceinline__ const uint8_t* BlockOfSegment(const AttentionArgs& a,
                                                         const AttentionTile& tile, int segment,
                                                         int begin, int end, int index) {
  const int key = segment * kKeysPerSegment + index * kKvBlockTokens;
  if (index >= kSegmentBlocks || key < begin || key >= end) return a.kv.pool;
  return HeadOfBlock(a.kv, a.tables[tile.table + key / kKvBlockTokens],
                     static_cast<int>(blockIdx.x));
}

// The stages of a block that walks the keys [begin, end) of a segment. Steps are named by their
// first key; `begin` is one.
template <typename T, class Shape>
class StepStages {
 public:
  __device__ __forceinline__ StepStages(const AttentionArgs& a, const AttentionTile& tile, int part,
                                        int segment, int begin, int end, AttentionShared<T>& shared)
      : shape_(a.head_dim_padded),
        shared_(shared),
        memory_(reinterpret_cast<uint32_t*>(&shared + 1)),
        segment_begin_(segment * kKeysPerSegment),
        end_(end),
        thread_(static_cast<int>(threadIdx.x)),
        to_(thread_ ^ (thread_ / 4 & 2)),
        key_word_(thread_ / 4 % Shape::kKeyWords) {
    const int all_panels = shape_.head_words * Shape::kPerWord / kPanelWidth;
    const int behind = all_panels - part * (Shape::kTiles / 2);
    panels_ = behind < shape_.panels ? behind : shape_.panels;
    v_offset_ = kKvBlockTokens * shape_.head_words * 4 +
                part * (Shape::kTiles / 2) * Shape::kKeyWords * kPanelWidth * 4;
    block_ = BlockOfSegment(a, tile, segment, begin, end, thread_);
  }

  // Shares the addresses of the segment's blocks. To be called once, before a barrier and the first
  // copy. It is apart from the constructor so that other loads begin between.
  __device__ __forceinline__ void ShareBlocks() const {
    if (thread_ < kSegmentBlocks) shared_.blocks[thread_] = block_;
  }

  __device__ __forceinline__ const Shape& shape() const { return shape_; }
  // The panels of V that exist in the block's part.
  __device__ __forceinline__ int panels() const {
    return Shape::kChunks > 0 ? shape_.panels : panels_;
  }

  __device__ __forceinline__ uint32_t* K(int stage) const {
    return memory_ + stage * shape_.stage_words;
  }
  __device__ __forceinline__ uint32_t* V(int stage) const { return K(stage) + shape_.k_words; }

  // The thread's first 16 bytes of K in the KV blocks of a step. They are read some time before the
  // copies, whose latency they would add to. Behind the segment these are of some block.
  struct Addresses {
    const uint8_t* blocks[kStepBlocks];
  };
  __device__ __forceinline__ Addresses AddressesOf(int step) const {
    Addresses from;
#pragma unroll
    for (int block = 0; block < kStepBlocks; ++block) {
      const int index = (step - segment_begin_) / kKvBlockTokens + block;
      from.blocks[block] =
          shared_.blocks[index < kSegmentBlocks ? index : kSegmentBlocks - 1] + thread_ * 16;
    }
    return from;
  }

  // Start the copies of K and of V. Keys from `end` on become zeros, because stale values may be
  // NaN (MaskLastKey has the rest): K by whole KV blocks. 128 threads copy 16 bytes each, in some
  // rounds. There are no branches, so that the compiler may mix these copies with other work.
  __device__ __forceinline__ void CopyK(int step, int stage, const Addresses& from) const {
#pragma unroll
    for (int block = 0; block < kStepBlocks; ++block) {
      const int rounds = shape_.head_words / 16;
      CopyRounds<Shape::kChunks / 2>(rounds, K(stage) + block * rounds * kRoundWords + 4 * to_,
                                     from.blocks[block], step + block * kKvBlockTokens < end_);
    }
  }
  __device__ __forceinline__ void CopyV(int step, int stage, const Addresses& from) const {
#pragma unroll
    for (int block = 0; block < kStepBlocks; ++block) {
      CopyRounds<kExactRounds>(rounds(), OfThread(stage, block), from.blocks[block] + v_offset_,
                               FirstKeyOfWord(step, block) < end_);
    }
  }
  // Makes the key behind the end zero, if the last word of keys holds it. To be called for each
  // step, behind the wait for its copy of V and before the barrier.
  __device__ __forceinline__ void MaskLastKey(int step, int stage) const {
    if constexpr (Shape::kPerWord == 1) return;
    if (step + kKeysPerStep <= end_) return;
#pragma unroll
    for (int block = 0; block < kStepBlocks; ++block) {
      if (FirstKeyOfWord(step, block) + 1 != end_) continue;
      uint32_t* at = OfThread(stage, block);
#pragma unroll
      for (int round = 0; round < rounds(); ++round) {
#pragma unroll
        for (int i = 0; i < 4; ++i) at[round * kRoundWords + i] &= 0xffffu;
      }
    }
  }

 private:
  static constexpr int kRoundWords = kAttentionThreads * 4;
  // The rounds of V in a KV block, if the kernel is for one width of heads; else 0.
  static constexpr int kExactRounds =
      Shape::kChunks > 0 ? Shape::kTiles / 2 * Shape::kKeyWords / 32 : 0;

  // kRounds = 0: `rounds` is known when the kernel runs.
  template <int kRounds>
  __device__ __forceinline__ void CopyRounds(int rounds, uint32_t* to, const uint8_t* from,
                                             bool exists) const {
    if constexpr (kRounds == 0) {
      for (int round = 0; round < rounds; ++round) {
        CopyAsync16(to + round * kRoundWords, from + round * kRoundWords * 4, exists);
      }
    } else {
      static_assert(kRounds == 1 || kRounds == 2 || kRounds == 4);
      CopyAsync16(to, from, exists);
      if constexpr (kRounds > 1) CopyAsync16<4 * kRoundWords>(to, from, exists);
      if constexpr (kRounds > 2) CopyAsync16<8 * kRoundWords>(to, from, exists);
      if constexpr (kRounds > 2) CopyAsync16<12 * kRoundWords>(to, from, exists);
    }
  }
  __device__ __forceinline__ int rounds() const { return panels() * Shape::kKeyWords / 32; }
  __device__ __forceinline__ uint32_t* OfThread(int stage, int block) const {
    return V(stage) + block * rounds() * kRoundWords + 4 * to_;
  }
  // The first key of the word of keys that this thread copies in all rounds.
  __device__ __forceinline__ int FirstKeyOfWord(int step, int block) const {
    return step + block * kKvBlockTokens + key_word_ * Shape::kPerWord;
  }

  const Shape shape_;
  AttentionShared<T>& shared_;
  uint32_t* const memory_;
  const int segment_begin_, end_, thread_;
  const int to_;        // the place of the thread's 16 bytes in a round
  const int key_word_;  // of a KV block
  int panels_, v_offset_;
  const uint8_t* block_;  // of this thread, to be shared
};

}  // namespace skein::cuda::inline SKEIN_KERNEL_SIDE
