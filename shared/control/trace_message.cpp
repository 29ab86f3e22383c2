#include "control/trace_message.hpp"

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel::run {
namespace {

using nlohmann::json;

template <typename Answer>
Answer read_or_refuse(const json& answer, std::initializer_list<const char*> required) {
    try {
        require_fields(answer, required);
        return answer.get<Answer>();
    } catch (const json::exception& e) {
        throw config_error(
            fmt::format("its answer can't be read ({}): check whether its version differs", e.what()));
    }
}

}  // namespace

json to_json(const trace_answer& a) { return a; }
json to_json(const trace_file_answer& a) { return a; }

trace_file_answer read_trace_file(const json& answer) {
    return read_or_refuse<trace_file_answer>(answer, {"id"});
}
trace_answer read_trace(const json& answer) {
    return read_or_refuse<trace_answer>(answer, {"run_id", "notes"});
}

}  // namespace carousel::run
