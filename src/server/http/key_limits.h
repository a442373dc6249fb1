#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "server/scheduling_defaults.h"

namespace skein {

// The limits of each API key (ApiKey): token buckets, full at first, of a minute's requests, a
// minute's tokens and a day's tokens; and a count of running requests.
//
// The tokens of a request are known once it runs. So a request is taken in while its buckets of
// tokens hold one, and may draw them below zero: what follows waits until the time has paid for it.
// Thread-safe.
class KeyLimits {
 public:
  // `keys` must outlive the object.
  explicit KeyLimits(const std::vector<ApiKey>& keys);

  // Takes a request of keys[index] in at `now_us` of a steady clock. The request runs as long as
  // the returned object lives; it may outlive this one. kResourceExhausted, with the time after
  // which it would be taken in: a limit is reached, and nothing is counted.
  Result<std::shared_ptr<void>> Admit(size_t index, int64_t now_us);
  // Takes tokens of keys[index]; null if it has no limit of tokens. May outlive this object.
  std::function<void(int64_t num_tokens)> Charger(size_t index) const;

 private:
  // At most `most`, which `period_us` fill.
  struct Bucket {
    double most = 0;  // 0: no limit
    double period_us = 1;
    double left = 0;
    int64_t filled_us = 0;

    void Fill(int64_t now_us);
    double WaitS() const;  // until it holds one
  };
  struct Account {
    std::mutex mutex;  // guards the members below
    Bucket requests, minute_tokens, day_tokens;
    int32_t num_running = 0;
  };

  const std::vector<ApiKey>& keys_;
  // By key, in the order of keys_; null: no limits. Shared with the running requests.
  std::vector<std::shared_ptr<Account>> accounts_;
};

}  // namespace skein
