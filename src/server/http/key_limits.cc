#include "server/http/key_limits.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

constexpr double kMinuteUs = 60e6;
constexpr int32_t kParallelRetryS = 1;
constexpr double kRoundingS = 1e-6;  // of the sums of a bucket: no second more for it

}  // namespace

KeyLimits::KeyLimits(const std::vector<ApiKey>& keys)
    : keys_(keys), mutex_(std::make_shared<std::mutex>()), accounts_(keys.size()) {
  for (size_t i = 0; i < keys.size(); ++i) {
    accounts_[i].requests_left = keys[i].requests_per_minute;
    accounts_[i].num_running = std::make_shared<int32_t>(0);
  }
}

Result<std::shared_ptr<void>> KeyLimits::Admit(size_t index, int64_t now_us) {
  const ApiKey& key = keys_[index];
  if (key.requests_per_minute == 0 && key.max_parallel_requests == 0) {
    return std::shared_ptr<void>();
  }
  std::lock_guard lock(*mutex_);
  Account& account = accounts_[index];
  if (key.max_parallel_requests > 0 && *account.num_running >= key.max_parallel_requests) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("this key's {} parallel requests are running "
                              "(max_parallel_requests)",
                              key.max_parallel_requests))
        .RetryAfter(kParallelRetryS);
  }
  if (key.requests_per_minute > 0) {
    const double per_us = key.requests_per_minute / kMinuteUs;
    const auto passed_us = static_cast<double>(now_us - account.filled_us);
    account.requests_left =
        std::min<double>(key.requests_per_minute, account.requests_left + passed_us * per_us);
    account.filled_us = now_us;
    if (account.requests_left < 1) {
      const double wait_s = 1e-6 * (1 - account.requests_left) / per_us;
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("this key's {} requests of a minute are used "
                                "(requests_per_minute)",
                                key.requests_per_minute))
          .RetryAfter(static_cast<int32_t>(std::ceil(wait_s - kRoundingS)));
    }
    account.requests_left -= 1;
  }
  ++*account.num_running;
  return std::shared_ptr<void>(nullptr, [mutex = mutex_, running = account.num_running](void*) {
    std::lock_guard guard(*mutex);
    --*running;
  });
}

}  // namespace skein
