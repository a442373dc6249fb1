#pragma once

#include <fmt/format.h>

// fmt::format calls the compiled library, but a log message and fmt::join make every source compile
// all of fmt's formatting again. With this, which the precompiled headers include, they call the
// one copy in fmt_instances.cc. No source needs to include it.
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);
