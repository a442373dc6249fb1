#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// The templates of nlohmann/json.hpp that most sources with JSON would compile again. With this,
// which the precompiled headers include, they call the one copy in json_instances.cc. No source
// needs to include it. The texts are character ranges, strings and streams.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
extern template class nlohmann::detail::lexer<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<const char*>>;
extern template class nlohmann::detail::parser<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<const char*>>;
extern template class nlohmann::detail::lexer<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
extern template class nlohmann::detail::parser<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
extern template class nlohmann::detail::lexer<nlohmann::json,
                                              nlohmann::detail::input_stream_adapter>;
extern template class nlohmann::detail::parser<nlohmann::json,
                                               nlohmann::detail::input_stream_adapter>;
extern template class std::vector<nlohmann::json>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;
extern template class nlohmann::detail::json_sax_dom_parser<nlohmann::ordered_json>;
extern template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::ordered_json>;
extern template class nlohmann::detail::lexer<
    nlohmann::ordered_json, nlohmann::detail::iterator_input_adapter<const char*>>;
extern template class nlohmann::detail::parser<
    nlohmann::ordered_json, nlohmann::detail::iterator_input_adapter<const char*>>;
extern template class nlohmann::detail::lexer<
    nlohmann::ordered_json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
extern template class nlohmann::detail::parser<
    nlohmann::ordered_json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
extern template class nlohmann::detail::lexer<nlohmann::ordered_json,
                                              nlohmann::detail::input_stream_adapter>;
extern template class nlohmann::detail::parser<nlohmann::ordered_json,
                                               nlohmann::detail::input_stream_adapter>;
extern template class std::vector<nlohmann::ordered_json>;
extern template class std::map<std::string, nlohmann::json, std::less<>>;
