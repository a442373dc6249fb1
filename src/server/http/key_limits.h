#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "server/scheduling_defaults.h"

namespace skein {

// The limits of each API key (ApiKey::requests_per_minute, max_parallel_requests): a token bucket
// that holds one minute's requests and is full at first, and a count of running requests.
// Thread-safe.
class KeyLimits {
 public:
  // `keys` must outlive the object.
  explicit KeyLimits(const std::vector<ApiKey>& keys);

  // Takes a request of keys[index] in at `now_us` of a steady clock. The request runs as long as
  // the returned object lives; it may outlive this one. kResourceExhausted, with the time to wait:
  // a limit is reached, and nothing is counted.
  Result<std::shared_ptr<void>> Admit(size_t index, int64_t now_us);

 private:
  struct Account {
    double requests_left = 0;  // of this minute; between 0 and requests_per_minute
    int64_t filled_us = 0;
    std::shared_ptr<int32_t> num_running;
  };

  const std::vector<ApiKey>& keys_;
  std::shared_ptr<std::mutex> mutex_;  // guards the accounts; shared with the running requests
  std::vector<Account> accounts_;      // of keys_, in their order
};

}  // namespace skein
