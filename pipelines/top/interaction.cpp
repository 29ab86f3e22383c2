#include "top/interaction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "os/table.hpp"

namespace carousel::supervisor {
namespace {

constexpr int escape = '\x1b', delete_key = 0x7F, backspace = '\b', erase_line = 0x15;  // Ctrl-U
constexpr std::size_t page = 10, most_typed = 200;

bool is_enter(int key) { return key == '\n' || key == '\r'; }

}  // namespace

void interaction::set_rows(std::vector<stage_row> rows) {
    rows_ = std::move(rows);
    const auto same = [&](const stage_row& r) { return r.label == label_; };
    if (std::none_of(rows_.begin(), rows_.end(), same)) label_ = rows_.empty() ? "" : rows_.front().label;
}

std::size_t interaction::selected() const noexcept {
    const auto at =
        std::find_if(rows_.begin(), rows_.end(), [&](const stage_row& r) { return r.label == label_; });
    return at == rows_.end() ? 0 : static_cast<std::size_t>(at - rows_.begin());
}

std::size_t interaction::scrolled(std::size_t most) noexcept { return scrolled_ = std::min(scrolled_, most); }

std::vector<interaction::action> interaction::actions() const {
    if (rows_.empty()) return {};
    const std::string& state = rows_[selected()].state;
    std::vector<action> out;
    if (state == "down" || state == "failed") {
        out.push_back({'d', "up", "d start (up)"});
    } else {
        out.push_back(
            {'p', state == "stopped" ? "cont" : "stop", state == "stopped" ? "p continue" : "p pause"});
        out.push_back({'r', "restart", "r restart"});
        out.push_back({'x', "kill", "x kill"});
        out.push_back({'d', "down", "d end (down)"});
    }
    out.push_back({'l', "logs", "l log", false});
    return out;
}

interaction::effect interaction::start(std::vector<std::string> words) {
    mode_ = mode::table;
    running_ = fmt::format("{}", fmt::join(words, " "));
    return {effect::kind::command, std::move(words)};
}

interaction::effect interaction::open_text(std::string title, std::vector<std::string> words) {
    mode_ = mode::text;
    title_ = std::move(title);
    scrolled_ = 0;
    return {effect::kind::show_text, std::move(words)};
}

interaction::effect interaction::refuse_second() {
    failed_ = true;
    result_ = fmt::format("not done: `{}` has not returned yet", running_);
    mode_ = mode::table;
    return {};
}

interaction::effect interaction::choose(int key) {
    const std::vector<action> all = actions();
    const auto a = std::find_if(all.begin(), all.end(), [&](const action& each) { return each.key == key; });
    if (a == all.end()) return {};
    if (!a->asks) return open_text("log of " + label_, {a->name, "-f", "-n", "1000", "--no-color", label_});
    if (!running_.empty()) return refuse_second();
    const std::string pid = rows_[selected()].pid;
    asked_ = {a->name, label_};
    question_ = fmt::format("{} {}{}? y/n", a->name, label_, pid == "-" ? "" : fmt::format(" (pid {})", pid));
    mode_ = mode::confirmation;
    return {};
}

bool interaction::move(int key) {
    if (rows_.empty()) return false;
    const std::size_t last = rows_.size() - 1, at = selected();
    std::size_t to = at;
    switch (key) {
        case key_up:
        case 'k':
            to = at == 0 ? 0 : at - 1;
            break;
        case key_down:
        case 'j':
            to = std::min(at + 1, last);
            break;
        case key_page_up:
            to = at > page ? at - page : 0;
            break;
        case key_page_down:
            to = std::min(at + page, last);
            break;
        case key_home:
            to = 0;
            break;
        case key_end:
            to = last;
            break;
        default:
            return false;
    }
    label_ = rows_[to].label;
    return true;
}

interaction::effect interaction::press_in_table(int key) {
    if (move(key)) return {};
    if (is_enter(key)) {
        if (!rows_.empty()) mode_ = mode::actions;
        return {};
    }
    switch (key) {
        case 'q':
        case 'Q':
        case escape:
            return {effect::kind::quit};
        case ' ':
            return {effect::kind::refresh};
        case '?':
        case 'h':
            mode_ = mode::help;
            return {};
        case 's':
            typed_.clear();
            mode_ = mode::parameter;
            return {};
        default:
            return choose(key);
    }
}

interaction::effect interaction::press_in_parameter(int key) {
    if (key == escape) {
        mode_ = mode::table;
    } else if (key == erase_line) {
        typed_.clear();
    } else if (key == delete_key || key == backspace) {
        if (!typed_.empty()) typed_.pop_back();
    } else if (key >= ' ' && key < delete_key && typed_.size() < most_typed) {
        typed_ += static_cast<char>(key);
    } else if (is_enter(key)) {
        if (typed_.empty()) return open_text("parameters of the pipeline", {"set"});
        if (!running_.empty()) return refuse_second();
        return start({"set", typed_});
    }
    return {};
}

interaction::effect interaction::press_in_text(int key) {
    switch (key) {
        case key_up:
        case 'k':
            ++scrolled_;
            return {};
        case key_down:
        case 'j':
            scrolled_ -= std::min<std::size_t>(scrolled_, 1);
            return {};
        case key_page_up:
            scrolled_ += page;
            return {};
        case key_page_down:
            scrolled_ -= std::min(scrolled_, page);
            return {};
        case key_home:
            scrolled_ = ~std::size_t{0} / 2;
            return {};
        case key_end:
            scrolled_ = 0;
            return {};
        case 'q':
        case 'l':
        case escape:
            mode_ = mode::table;
            return {effect::kind::close_text};
        default:
            return {};
    }
}

interaction::effect interaction::press(int key) {
    result_.clear();
    failed_ = false;
    switch (mode_) {
        case mode::table:
            return press_in_table(key);
        case mode::help:
            mode_ = mode::table;
            return {};
        case mode::actions:
            mode_ = mode::table;
            return choose(key);
        case mode::confirmation:
            mode_ = mode::table;
            if (key == 'y' || key == 'Y') return start(asked_);
            result_ = fmt::format("cancelled: {}", fmt::join(asked_, " "));
            return {};
        case mode::parameter:
            return press_in_parameter(key);
        case mode::text:
            return press_in_text(key);
    }
    return {};
}

void interaction::finish(bool succeeded, const std::string& text) {
    failed_ = !succeeded;
    result_ = text.empty() ? fmt::format("{}: {}", running_, succeeded ? "done" : "failed without a message")
                           : text;
    running_.clear();
}

std::string interaction::prompt() const {
    switch (mode_) {
        case mode::actions: {
            std::string text = fmt::format("{} ({}):", label_, rows_.empty() ? "" : rows_[selected()].state);
            for (const action& a : actions()) text += "  " + a.text;
            return text;
        }
        case mode::confirmation:
            return question_;
        case mode::parameter:
            return fmt::format("set KEY=VALUE: {}_", typed_);
        default:
            return !result_.empty() ? result_ : running_.empty() ? "" : running_ + " ...";
    }
}

}  // namespace carousel::supervisor
