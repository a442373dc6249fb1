#include "testing/test_instances.h"

template class std::basic_string<char>;
template class std::vector<std::string>;
template class std::vector<int>;
template class std::vector<float>;
