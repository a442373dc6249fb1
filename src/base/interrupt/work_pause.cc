#include "base/interrupt/work_pause.h"

#include <utility>

namespace skein {
namespace {

thread_local WorkPause* current_pause = nullptr;

}  // namespace

PauseScope::PauseScope(WorkPause* pause) : outer_(std::exchange(current_pause, pause)) {}

PauseScope::~PauseScope() { current_pause = outer_; }

bool MayGoOn() { return current_pause == nullptr || current_pause->GoOn(); }

}  // namespace skein
