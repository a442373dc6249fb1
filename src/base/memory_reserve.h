#pragma once

#include <cstddef>
#include <cstdint>

namespace skein {

// Address space that is kept free for work that must not stop half-way: the engine's bookkeeping,
// and the answers that say that there is no memory. A failed allocation of a thread inside a
// ReserveScope, or of a destructor while an exception passes, gives a slice of it back to the
// system and is tried again. All others throw std::bad_alloc, which ends their request alone.
//
// There is one for the process, since there is one std::new_handler. Without Keep every failed
// allocation throws. All members may be called from any thread.
class MemoryReserve {
 public:
  static constexpr size_t kSliceBytes = size_t{4} << 20;
  static constexpr int32_t kNumSlices = 8;

  // Takes the reserve and becomes the handler of operator new. Untouched pages: it costs address
  // space and no memory. False if there is too little.
  static bool Keep();
  // Slices that were given back and could not be taken again.
  static int32_t NumMissing();
  // Takes them again as far as there is memory; true if none is missing. One load if none is.
  static bool Refill();
  // Whether more than half is missing, after Refill.
  static bool IsShort() { return !Refill() && NumMissing() > kNumSlices / 2; }

 private:
  static void OnNoMemory();  // the handler
};

// While it lives, failed allocations of its thread may use the reserve; of nested scopes the
// innermost decides. A handler of requests may use half of it: libraries that it calls do not
// survive every failure, but it takes any amount.
class ReserveScope {
 public:
  enum class Share : uint8_t { kHalf, kAll };

  explicit ReserveScope(Share share = Share::kAll);
  ~ReserveScope();
  ReserveScope(const ReserveScope&) = delete;
  ReserveScope& operator=(const ReserveScope&) = delete;
};

}  // namespace skein
