#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "server/scheduling_defaults.h"

namespace skein {

// The limits of each API key (ApiKey): token buckets, which are full at first, for the requests of
// a minute, the tokens of a minute and the tokens of a day; and the number of running requests.
//
// The number of a request's tokens is known only once it runs. A request is admitted while its
// buckets hold at least one token each, and may draw them below zero. Later requests then wait
// until the buckets have filled again.
// Thread-safe.
class KeyLimits {
 public:
  // `keys` must outlive this object.
  explicit KeyLimits(const std::vector<ApiKey>& keys);

  // Admits a request of keys[index] at `now_us` of a steady clock. The request counts as running
  // while the returned object lives; that object may outlive the KeyLimits. If a limit is reached,
  // nothing is counted, and the error kResourceExhausted carries the time after which the request
  // would be admitted.
  Result<std::shared_ptr<void>> Admit(size_t index, int64_t now_us);
  // Returns the function that takes tokens from the buckets of keys[index]; null if the key has no
  // limit of tokens. The function may outlive this object.
  std::function<void(int64_t num_tokens)> Charger(size_t index) const;

 private:
  // A bucket of at most `most` tokens, which fills in `period_us`.
  struct Bucket {
    double most = 0;  // 0: no limit
    double period_us = 1;
    double left = 0;
    int64_t filled_us = 0;

    void Fill(int64_t now_us);
    double WaitS() const;  // seconds until the bucket holds one token
  };
  struct Account {
    std::mutex mutex;  // guards the members below
    Bucket requests, minute_tokens, day_tokens;
    int32_t num_running = 0;
  };

  const std::vector<ApiKey>& keys_;
  // The accounts in the order of keys_; null: the key has no limits. Running requests share them.
  std::vector<std::shared_ptr<Account>> accounts_;
};

}  // namespace skein
