#include "core/log.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/enum_names.hpp"
#include "core/io.hpp"

namespace carousel::log {

BOOST_DESCRIBE_ENUM(level, debug, info, warning, error)

const char* name_of(level at) noexcept { return enum_name(at); }

std::string_view prefix_of(level at) noexcept {
    if (at == level::error) return "error: ";
    if (at == level::debug) return "debug: ";
    return at == level::warning ? "warning: " : "";
}

level level_of(std::string_view line) noexcept {
    for (const level each : {level::error, level::warning, level::debug})
        if (line.starts_with(prefix_of(each))) return each;
    return level::info;
}

std::string_view last_line_of(std::string_view output) noexcept {
    while (output.ends_with('\n')) output.remove_suffix(1);
    output.remove_prefix(output.rfind('\n') + 1);  // if there is no newline, npos + 1 is 0
    if (level_of(output) == level::error) output.remove_prefix(prefix_of(level::error).size());
    return output;
}

level threshold() noexcept {
    static const level chosen = [] {
        const char* text = std::getenv("CAROUSEL_LOG");
        return enum_named<level>(text != nullptr ? text : "").value_or(level::info);
    }();
    return chosen;
}

void write_line(level at, std::string_view text) noexcept {
    try {
        std::string line;
        line.reserve(text.size() + 12);
        line += prefix_of(at);
        line += text;
        line += '\n';
        (void)write_whole(STDERR_FILENO, line.data(), line.size());
    } catch (...) {  // out of memory: losing a log line is better than ending the stage
    }
}

}  // namespace carousel::log
