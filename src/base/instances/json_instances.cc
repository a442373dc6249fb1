#include "base/instances/json_instances.h"

template class nlohmann::basic_json<>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;
template class nlohmann::detail::lexer<nlohmann::json,
                                       nlohmann::detail::iterator_input_adapter<const char*>>;
template class nlohmann::detail::parser<nlohmann::json,
                                        nlohmann::detail::iterator_input_adapter<const char*>>;
template class nlohmann::detail::lexer<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
template class nlohmann::detail::parser<
    nlohmann::json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
template class nlohmann::detail::lexer<nlohmann::json, nlohmann::detail::input_stream_adapter>;
template class nlohmann::detail::parser<nlohmann::json, nlohmann::detail::input_stream_adapter>;
template class std::vector<nlohmann::json>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class nlohmann::detail::json_sax_dom_parser<nlohmann::ordered_json>;
template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::ordered_json>;
template class nlohmann::detail::lexer<nlohmann::ordered_json,
                                       nlohmann::detail::iterator_input_adapter<const char*>>;
template class nlohmann::detail::parser<nlohmann::ordered_json,
                                        nlohmann::detail::iterator_input_adapter<const char*>>;
template class nlohmann::detail::lexer<
    nlohmann::ordered_json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
template class nlohmann::detail::parser<
    nlohmann::ordered_json, nlohmann::detail::iterator_input_adapter<std::string::const_iterator>>;
template class nlohmann::detail::lexer<nlohmann::ordered_json,
                                       nlohmann::detail::input_stream_adapter>;
template class nlohmann::detail::parser<nlohmann::ordered_json,
                                        nlohmann::detail::input_stream_adapter>;
template class std::vector<nlohmann::ordered_json>;
template class std::map<std::string, nlohmann::json, std::less<>>;
