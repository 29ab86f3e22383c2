#include "top/screen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "os/console.hpp"
#include "os/table.hpp"

namespace carousel::supervisor {
namespace {

using mode = interaction::mode;
using lines_t = std::vector<std::string>;
constexpr const char *bold = "\x1b[1m", *red = "\x1b[31m", *reversed = "\x1b[7m";

constexpr const char* help[] = {
    "Keys",
    "  up down j k   select a stage; also PgUp, PgDn, Home, End",
    "  Enter         actions of the selected stage: those of the next two lines",
    "  p r x         pause or continue it, restart it, kill it (SIGKILL): asks first",
    "  d l           end it for good or start it again: asks first; its log",
    "  s             set a parameter of the pipeline; without a value: list them",
    "  space ? q     poll now, this help, end top (the pipeline continues)",
    "Stages",
    "  STATE         running, starting, done (end of stream), stopped (paused),",
    "                backoff (waits for its restart), dying or dead (is replaced),",
    "                failed (not restarted any more), down (ended by `down`)",
    "  BUSY          share of the time with work; P50, P99 MS: time per frame",
    "  FRAMES/S      of the last seconds, as BUSY; AGE, CPU, MEMORY: of its process",
    "Rings",
    "  FRAME         the newest frame; IN/S, OUT/S: frames written and released",
    "  READERS       lag: frames that it has not finished; (latest): never blocks",
    "  SLOTS         . free   w being written   R ready   r being read",
    "                d done   ! quarantined: a dead process may still write",
};

std::string colored(const std::string& line, const char* color, bool wanted) {
    return wanted ? color + line + color_off : line;
}

/// Cuts a line without colours to the width; a cut line ends with an ellipsis.
std::string cut(const std::string& line, std::size_t width) {
    return width == 0 ? line : shortened(line, width);
}

/// One part of the line of keys. If the line is too long, the parts with the highest rank are left out.
struct key_text {
    const char* text;
    int rank;
};

std::string keys_line(const std::vector<key_text>& parts, std::size_t width) {
    for (int highest = 9;; --highest) {
        std::string line;
        for (const key_text& p : parts)
            if (p.rank <= highest) line += fmt::format("{}{}", line.empty() ? "" : "  ", p.text);
        if (width == 0 || width_of(line) <= width || highest == 0) return cut(line, width);
    }
}

std::vector<key_text> keys_of(mode m) {
    switch (m) {
        case mode::help:
            return {{"any key closes this help", 0}};
        case mode::actions:
            return {{"choose an action by its key", 0}, {"other keys cancel", 1}};
        case mode::confirmation:
            return {{"y confirms", 0}, {"other keys cancel", 0}};
        case mode::parameter:
            return {{"Enter sets it", 0}, {"Esc cancels", 0}, {"empty: list the parameters", 1}};
        case mode::text:
            return {{"Esc close", 0}, {"up down PgUp PgDn scroll", 1}, {"Home oldest", 2}, {"End newest", 2}};
        case mode::table:
            break;
    }
    return {{"? help", 0},    {"q quit", 0},  {"\u2191\u2193 select", 1},
            {"Enter act", 1}, {"p pause", 3}, {"r restart", 3},
            {"x kill", 3},    {"l log", 2},   {"s set", 4}};
}

/// Appends the part of `items` around `selected` for which there are `rows`; the last of them reports what is
/// left out.
void append_part(lines_t& to, const lines_t& items, std::size_t rows, std::size_t selected,
                 const char* what) {
    if (items.size() <= rows) {
        to.insert(to.end(), items.begin(), items.end());
        return;
    }
    if (rows == 0) return;
    const std::size_t shown = rows > 1 ? rows - 1 : 1, last = items.size() - shown;
    const std::size_t first = std::min(selected > shown / 2 ? selected - shown / 2 : 0, last);
    const auto at = items.begin() + static_cast<std::ptrdiff_t>(first);
    to.insert(to.end(), at, at + static_cast<std::ptrdiff_t>(shown));
    if (rows > 1)
        to.push_back(fmt::format("  {} {} to {} of {}", what, first + 1, first + shown, items.size()));
}

/// The tables on a screen with `rows` rows: if they do not fit, up to two thirds of the room after the head
/// are for the stages, and the rings shown are those around the selected stage's ring.
lines_t table_lines(const top_input& in, const interaction& ui, std::size_t rows) {
    const top_sections s = sections_of(in);
    lines_t out = s.head;
    out.insert(out.end(), {"", s.stages_title});
    const std::size_t events = s.events.empty() ? 0 : s.events.size() + 1;
    const std::size_t others = s.notes.size() + 2 + s.rings.size() + events;
    const std::size_t room = rows > out.size() ? rows - out.size() : 0;
    const std::size_t least = std::min(others, room / 3);
    append_part(out, s.stages, std::max<std::size_t>(1, room - least), ui.selected(), "stages");
    out.insert(out.end(), s.notes.begin(), s.notes.end());
    out.insert(out.end(), {"", s.rings_title});
    const std::size_t rest = rows > out.size() ? rows - out.size() : 0;
    // with room for some lines, the newest event is more useful than one more ring
    const std::size_t news = s.events.empty() || rest < 4 ? 0 : 2;
    const std::size_t ring =
        ui.selected() < s.ring_of_row.size() ? s.ring_of_row[ui.selected()] : top_sections::npos;
    append_part(out, s.rings, rest - news, ring == top_sections::npos ? 0 : ring, "rings");
    if (!s.events.empty()) out.emplace_back();
    out.insert(out.end(), s.events.begin(), s.events.end());
    return out;
}

lines_t text_lines(const std::vector<std::string>& text, interaction& ui, const top_input& in,
                   std::size_t rows) {
    const std::size_t shown = std::min(text.size(), rows > 1 ? rows - 1 : 0);
    const std::size_t end = text.size() - ui.scrolled(text.size() - shown);
    const std::string part =
        text.empty() ? "no lines yet" : fmt::format("{} to {} of {}", end - shown + 1, end, text.size());
    lines_t out{
        colored(cut(printable(fmt::format("{}: {}", ui.title(), part)), in.width), reversed, in.color)};
    for (std::size_t k = end - shown; k < end; ++k) out.push_back(cut(printable(text[k]), in.width));
    return out;
}

}  // namespace

lines_t footer_lines(const interaction& ui, bool color, std::size_t width, std::size_t rows) {
    lines_t out;
    const std::size_t most = std::max<std::size_t>(1, rows / 3);
    const std::string text =
        ui.failed() && !ui.prompt().starts_with("error: ") ? "error: " + ui.prompt() : ui.prompt();
    if (!text.empty()) {
        const std::string all = width == 0 ? printable(text) : wrapped(printable(text), width, 2);
        for (std::size_t at = 0; at != std::string::npos;) {
            const std::size_t end = all.find('\n', at);
            out.push_back(colored(all.substr(at, end - at), ui.failed() ? red : bold, color));
            at = end == std::string::npos ? end : end + 1;
        }
        // a question without room for the keys is still a question
        const std::size_t room = most > 1 ? most - 1 : 1;
        if (out.size() > room) out.resize(room);
        if (most == 1) return out;
    }
    out.push_back(colored(keys_line(keys_of(ui.now()), width), reversed, color));
    return out;
}

lines_t body_lines(top_input in, interaction& ui, const std::vector<std::string>& text) {
    const std::size_t rows = in.rows;
    in.rows = 0;
    in.marks = true;
    in.selected = ui.label();
    lines_t out;
    switch (ui.now()) {
        case mode::help:
            for (const char* line : help) {
                const bool title = *line != ' ';
                out.push_back(colored(cut(line, in.width), bold, in.color && title));
            }
            break;
        case mode::text:
            out = text_lines(text, ui, in, rows);
            break;
        default:
            out = table_lines(in, ui, rows);
    }
    if (out.size() > rows) out.resize(rows);
    return out;
}

lines_t with_footer(lines_t body, const lines_t& footer, std::size_t rows) {
    const std::size_t room = rows > footer.size() ? rows - footer.size() : 0;
    body.resize(room);
    body.insert(body.end(), footer.begin(), footer.end());
    return body;
}

}  // namespace carousel::supervisor
