#pragma once

#include <optional>
#include <utility>

#include "base/check.h"
#include "skein/status.h"

namespace skein {

// Either a T, or the Status that says why there is no T.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    SKEIN_CHECK(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok().
  T& value() & { return Checked(); }
  const T& value() const& {
    SKEIN_CHECK(ok());
    return *value_;
  }
  T&& value() && { return std::move(Checked()); }
  T& operator*() & { return Checked(); }
  T* operator->() { return &Checked(); }

 private:
  T& Checked() {
    SKEIN_CHECK(ok());
    return *value_;
  }

  std::optional<T> value_;
  Status status_;
};

}  // namespace skein

#define SKEIN_CONCAT_INNER_(a, b) a##b
#define SKEIN_CONCAT_(a, b) SKEIN_CONCAT_INNER_(a, b)

// Evaluates `expression`. If its Status is not ok, returns that Status from the enclosing function.
#define SKEIN_RETURN_IF_ERROR(expression)          \
  do {                                             \
    ::skein::Status skein_status_ = (expression);  \
    if (!skein_status_.ok()) return skein_status_; \
  } while (false)

// `SKEIN_ASSIGN_OR_RETURN(auto x, F())` declares x with F's value, or returns F's Status.
#define SKEIN_ASSIGN_OR_RETURN(declaration, expression) \
  SKEIN_ASSIGN_OR_RETURN_INNER_(SKEIN_CONCAT_(skein_result_, __LINE__), declaration, expression)
#define SKEIN_ASSIGN_OR_RETURN_INNER_(result, declaration, expression) \
  auto result = (expression);                                          \
  if (!result.ok()) return result.status();                            \
  declaration = std::move(result).value()
