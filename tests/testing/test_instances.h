#pragma once

#include <string>
#include <vector>

// Tests are compiled without optimisation, and the linker prefers their copies of the standard
// library's functions: the code under test would run with these. With this, which the tests'
// precompiled headers include, all call the optimised copy in test_instances.cc. No source needs to
// include it.
extern template class std::basic_string<char>;
extern template class std::vector<std::string>;
extern template class std::vector<int>;
extern template class std::vector<float>;
