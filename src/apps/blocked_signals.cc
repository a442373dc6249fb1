#include "apps/blocked_signals.h"

#include <cstdlib>
#include <ctime>
#include <stop_token>
#include <thread>

namespace skein {

BlockedSignals::BlockedSignals(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  for (const int number : signals) sigaddset(&set_, number);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

void BlockedSignals::Wait() const {
  int received = 0;
  sigwait(&set_, &received);
}

bool BlockedSignals::WaitFor(std::chrono::milliseconds time) const {
  const timespec limit = {time.count() / 1000, (time.count() % 1000) * 1'000'000};
  return sigtimedwait(&set_, nullptr, &limit) > 0;
}

Result<std::unique_ptr<ModelHost>> LoadUnlessStopped(const ModelHostOptions& options,
                                                     const BlockedSignals& signals,
                                                     int exit_status) {
  std::jthread watch([&signals, exit_status](const std::stop_token& loaded) {
    while (!loaded.stop_requested()) {
      if (signals.WaitFor(std::chrono::milliseconds(5))) std::_Exit(exit_status);
    }
  });
  return ModelHost::Load(options);
}

}  // namespace skein
