#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/check.h"
#include "base/paged_array.h"
#include "text/tokenizer/models/id_writer.h"

namespace skein {

// A word as a number of machine words: its bytes, then zeros, and in the last byte its length and a
// mark. Words are equal if their keys are. Up to 8 * kWords - 1 bytes.
template <size_t kWords>
struct WordKey {
  static constexpr size_t kMaxBytes = 8 * kWords - 1;
  std::array<uint64_t, kWords> words{};

  // `mark` (0 or 1) distinguishes two kinds of words. REQUIRES: word.size() <= kMaxBytes.
  WordKey(std::string_view word, unsigned mark) {
    std::memcpy(words.data(), word.data(), word.size());
    words[kWords - 1] |= uint64_t{word.size() | mark << 7} << 56;
  }
  // Makes the key faster. REQUIRES: 8 * kWords bytes may be read at word.data().
  static WordKey Readable(std::string_view word, unsigned mark) {
    static_assert(kWords == 2);
    WordKey key;
    std::memcpy(key.words.data(), word.data(), sizeof(key.words));
    const size_t size = word.size();
    const uint64_t low = size >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
    const uint64_t high = size <= 8 ? 0 : ~uint64_t{0} >> 8 * (16 - size);
    key.words[0] &= low;
    key.words[1] = (key.words[1] & high) | uint64_t{size | mark << 7} << 56;
    return key;
  }

  uint64_t Hash() const {
    uint64_t hash = 0;
    for (size_t i = 0; i < kWords; ++i) hash ^= words[i] * kFactors[i % 4] + (hash >> 29);
    hash ^= hash >> 32;
    return hash * kFactors[0];
  }

 private:
  WordKey() = default;
  static constexpr uint64_t kFactors[4] = {0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93,
                                           0xA0761D6478BD642F, 0xE7037ED1A0B428DB};
};

// The ids of recent words: 2^kLogSets sets of two entries, of which the older is replaced. Any
// number of threads may call both functions at the same time, and no call waits. A reader skips an
// entry that is being written, and another writer leaves it alone. A sequence lock ensures that
// only complete entries are found: the entry's tail counts the writes, is odd during a write, and
// is read before and after the other members. Sets take memory from their first word on.
template <size_t kKeyWords, size_t kIdWords, int kLogSets>
class WordCache {
 public:
  static constexpr size_t kMaxIds = 2 * kIdWords + 1;
  using Key = WordKey<kKeyWords>;
  static_assert(kMaxIds < 16 && kMaxIds <= IdWriter::kSlack);

  // Appends the ids of the word if the cache has it.
  bool Find(const Key& key, uint64_t hash, IdWriter* out) const {
    Entry* set = SetOf(hash);
    return Read(set[0], key, out) || Read(set[1], key, out);
  }

  // REQUIRES: 1 to kMaxIds ids, each in [0, 2^28).
  void Insert(const Key& key, uint64_t hash, std::span<const TokenId> ids) {
    SKEIN_CHECK(!ids.empty() && ids.size() <= kMaxIds);
    Entry* set = SetOf(hash);
    uint64_t tails[2] = {Word(set[0].tail).load(std::memory_order_relaxed),
                         Word(set[1].tail).load(std::memory_order_relaxed)};
    const int way = tails[1] >> 32 < tails[0] >> 32 ? 1 : 0;
    Entry& entry = set[way];
    uint64_t tail = tails[way];
    const uint64_t version = tail >> 32;
    if (version & 1) return;
    const Word entry_tail(entry.tail);
    if (!entry_tail.compare_exchange_strong(tail, (version + 1) << 32, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
      return;
    }
    std::array<TokenId, kMaxIds> padded{};
    std::memcpy(padded.data(), ids.data(), ids.size_bytes());
    for (size_t i = 0; i < kKeyWords; ++i) {
      Word(entry.key[i]).store(key.words[i], std::memory_order_release);
    }
    for (size_t i = 0; i < kIdWords; ++i) {
      uint64_t pair;
      std::memcpy(&pair, &padded[2 * i], sizeof(pair));
      Word(entry.ids[i]).store(pair, std::memory_order_release);
    }
    const uint64_t last = static_cast<uint32_t>(padded[kMaxIds - 1]);
    entry_tail.store((version + 2) << 32 | ids.size() << 28 | last, std::memory_order_release);
  }

 private:
  using Word = std::atomic_ref<uint64_t>;  // every access to an entry is by this
  struct alignas(8 * (kKeyWords + kIdWords + 1)) Entry {
    uint64_t key[kKeyWords];
    uint64_t ids[kIdWords];  // two ids each
    uint64_t tail;           // version, number of ids (4 bits), last id (28 bits)
  };
  static_assert(sizeof(Entry) % 32 == 0);

  // A key holds its length and is never all zeros, so an empty entry is not found.
  static bool Read(Entry& entry, const Key& key, IdWriter* out) {
    const uint64_t tail = Word(entry.tail).load(std::memory_order_acquire);
    uint64_t difference = tail >> 32 & 1;
    for (size_t i = 0; i < kKeyWords; ++i) {
      difference |= Word(entry.key[i]).load(std::memory_order_acquire) ^ key.words[i];
    }
    if (difference != 0) return false;
    const size_t count = tail >> 28 & 15;
    TokenId* ids = out->cursor();
    for (size_t i = 0; i < kIdWords && 2 * i < count; ++i) {
      const uint64_t pair = Word(entry.ids[i]).load(std::memory_order_acquire);
      std::memcpy(ids + 2 * i, &pair, sizeof(pair));
    }
    ids[kMaxIds - 1] = static_cast<TokenId>(tail & 0xFFFFFFF);
    if (Word(entry.tail).load(std::memory_order_relaxed) != tail) return false;
    out->Advance(count);
    return true;
  }

  Entry* SetOf(uint64_t hash) const { return entries_.data() + 2 * (hash >> (64 - kLogSets)); }

  mutable PagedArray<Entry> entries_{size_t{2} << kLogSets};
};

}  // namespace skein
