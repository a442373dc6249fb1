#include "server/http/key_limits.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

constexpr double kMinuteUs = 60e6;
constexpr double kDayUs = 24 * 60 * kMinuteUs;
constexpr int32_t kParallelRetryS = 1;
// Rounding error of a bucket; it must not add a second to the wait.
constexpr double kRoundingS = 1e-6;

}  // namespace

void KeyLimits::Bucket::Fill(int64_t now_us) {
  const auto passed_us = static_cast<double>(std::max<int64_t>(0, now_us - filled_us));
  left = std::min(most, left + passed_us * most / period_us);
  filled_us = std::max(filled_us, now_us);
}

double KeyLimits::Bucket::WaitS() const {
  return most == 0 || left >= 1 ? 0 : 1e-6 * (1 - left) * period_us / most;
}

KeyLimits::KeyLimits(const std::vector<ApiKey>& keys) : keys_(keys), accounts_(keys.size()) {
  const auto full = [](auto most, double period_us) {
    return Bucket{static_cast<double>(most), period_us, static_cast<double>(most), 0};
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    const ApiKey& key = keys[i];
    const bool limited = key.requests_per_minute > 0 || key.max_parallel_requests > 0 ||
                         key.tokens_per_minute > 0 || key.tokens_per_day > 0;
    if (!limited) continue;
    accounts_[i] = std::make_shared<Account>();
    accounts_[i]->requests = full(key.requests_per_minute, kMinuteUs);
    accounts_[i]->minute_tokens = full(key.tokens_per_minute, kMinuteUs);
    accounts_[i]->day_tokens = full(key.tokens_per_day, kDayUs);
  }
}

Result<std::shared_ptr<void>> KeyLimits::Admit(size_t index, int64_t now_us) {
  const ApiKey& key = keys_[index];
  const std::shared_ptr<Account>& account = accounts_[index];
  if (account == nullptr) return std::shared_ptr<void>();
  std::lock_guard lock(account->mutex);
  for (Bucket* bucket : {&account->requests, &account->minute_tokens, &account->day_tokens}) {
    bucket->Fill(now_us);
  }
  if (key.max_parallel_requests > 0 && account->num_running >= key.max_parallel_requests) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("this key's {} parallel requests are running "
                              "(max_parallel_requests)",
                              key.max_parallel_requests))
        .RetryAfter(kParallelRetryS);
  }
  struct Limit {
    const Bucket& bucket;
    int64_t count;
    const char *unit, *period, *field;
  };
  const Limit limits[] = {
      {account->requests, key.requests_per_minute, "requests", "minute", "requests_per_minute"},
      {account->minute_tokens, key.tokens_per_minute, "tokens", "minute", "tokens_per_minute"},
      {account->day_tokens, key.tokens_per_day, "tokens", "day", "tokens_per_day"}};
  const Limit& last = *std::ranges::max_element(
      limits, {}, [](const Limit& limit) { return limit.bucket.WaitS(); });
  if (const double wait_s = last.bucket.WaitS(); wait_s > 0) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("this key's {} {} of a {} are used ({})", last.count, last.unit,
                              last.period, last.field))
        .RetryAfter(static_cast<int64_t>(std::ceil(wait_s - kRoundingS)));
  }
  account->requests.left -= 1;
  ++account->num_running;
  return std::shared_ptr<void>(nullptr, [account](void*) {
    std::lock_guard guard(account->mutex);
    --account->num_running;
  });
}

std::function<void(int64_t)> KeyLimits::Charger(size_t index) const {
  if (keys_[index].tokens_per_minute == 0 && keys_[index].tokens_per_day == 0) return nullptr;
  return [account = accounts_[index]](int64_t num_tokens) {
    std::lock_guard lock(account->mutex);
    for (Bucket* bucket : {&account->minute_tokens, &account->day_tokens}) {
      if (bucket->most > 0) bucket->left -= static_cast<double>(num_tokens);
    }
  };
}

}  // namespace skein
