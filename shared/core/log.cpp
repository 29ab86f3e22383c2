#include "core/log.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "core/io.hpp"

namespace carousel::log {

level threshold() noexcept {
    static const level chosen = [] {
        const char* text = std::getenv("CAROUSEL_LOG");
        const std::string_view name = text != nullptr ? text : "info";
        if (name == "debug") return level::debug;
        if (name == "warning") return level::warning;
        if (name == "error") return level::error;
        return level::info;
    }();
    return chosen;
}

void write_line(level at, std::string_view text) noexcept {
    try {
        std::string line;
        line.reserve(text.size() + 12);
        if (at == level::warning) line += "warning: ";
        if (at == level::error) line += "error: ";
        line += text;
        line += '\n';
        (void)write_whole(STDERR_FILENO, line.data(), line.size());
    } catch (...) {  // out of memory: losing a log line is better than ending the stage
    }
}

}  // namespace carousel::log
