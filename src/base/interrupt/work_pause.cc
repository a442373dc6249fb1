#include "base/interrupt/work_pause.h"

#include <utility>

namespace skein {

constinit thread_local WorkPause* current_pause = nullptr;

PauseScope::PauseScope(WorkPause* pause) : outer_(std::exchange(current_pause, pause)) {}

PauseScope::~PauseScope() { current_pause = outer_; }

}  // namespace skein
