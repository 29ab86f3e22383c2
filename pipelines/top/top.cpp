#include "top/top.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "control/client.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/table.hpp"
#include "os/terminal.hpp"
#include "runs/client.hpp"
#include "spec/programs.hpp"
#include "telemetry/snapshot.hpp"
#include "top/command_run.hpp"
#include "top/interaction.hpp"
#include "top/picture_pipe.hpp"
#include "top/screen.hpp"

namespace carousel::supervisor {
namespace {

constexpr f64 shortest_interval_s = 0.1, longest_interval_s = 3600, reply_timeout_s = 0.3;
constexpr u64 glance_every_ns = 25 * ns_per_ms;
constexpr u64 picture_every_ns = 200 * ns_per_ms, picture_patience_ns = 3 * ns_per_s;
constexpr screen_size paper = {80, 60};  // size of a picture if the output is not a screen
constexpr u64 action_patience_ns = 120 * ns_per_s;
constexpr u64 first_span_ns = 500 * ns_per_ms;

class watcher {
public:
    explicit watcher(const run::record& run) : observer_(run) {}

    /// Polls the control block; returns true if an event has happened since the last call.
    bool glance() {
        telemetry::read_snapshot(observer_.block(), snap_);
        events_.feed(snap_);
        const u64 last = events_.events().empty() ? 0 : events_.events().back().time_ns;
        return std::exchange(seen_ns_, last) != last;
    }
    void poll() {
        const run::observation now = observer_.poll();
        if (now.recreated) begin_with_block();
        glance();
        tracker_.feed(snap_);
        // After the end of the run, the last known state is shown.
        if (now.liveness.state == run::liveness::over) return;
        if (now.liveness.state == run::liveness::alone) {
            ps_ = {};
            notice_ = observer_.notice(now_ns(), 0);
            return;
        }
        try {
            ps_ = run::read_ps(run::client(observer_.run()).ask(run::ps_request{}, 0, reply_timeout_s));
            notice_.clear();
            // Only the supervisor knows how a killed process ended.
            const auto& c = events_.last_crash();
            if (c && c->seat < ps_.stages.size() && ps_.stages[c->seat].last_exit)
                events_.explain(c->seat, *ps_.stages[c->seat].last_exit);
        } catch (const error& e) {  // the control block's data is still valid
            notice_ = e.what();
        }
    }
    /// Returns the number of control blocks that this object has followed so far; mappings into earlier
    /// blocks are invalid.
    [[nodiscard]] u64 blocks() const { return blocks_; }
    [[nodiscard]] bool is_running() {
        run::record r = observer_.run();
        return still_running(r, gone_since_ns_);
    }
    [[nodiscard]] std::string ending() const {
        const std::optional<int> code = telemetry::end_of(observer_.block());
        return code ? fmt::format("exit code {}", *code)
                    : "its supervisor was killed, and none of its stages is left";
    }
    /// `size`: of the screen or paper; rows 0: no limit.
    [[nodiscard]] top_input input(bool color, screen_size size) const {
        top_input in;
        in.snap = &snap_;
        in.rates = &tracker_.now();
        in.events = &events_.events();
        in.ps = ps_;
        in.notice = notice_;
        in.color = color;
        in.width = size.columns;
        in.rows = size.rows;
        return in;
    }

private:
    void begin_with_block() {
        ++blocks_;
        tracker_ = telemetry::rate_tracker();
        events_.add(
            {now_ns(), telemetry::event_kind::warning, shm::none, run::recreated_text(observer_.run())});
    }

    run::observer observer_;
    telemetry::snapshot snap_;
    telemetry::rate_tracker tracker_;
    telemetry::event_tracker events_;
    run::ps_answer ps_;
    std::string notice_;
    u64 seen_ns_ = 0, gone_since_ns_ = 0, blocks_ = 1;
};

void print(const std::vector<std::string>& lines, std::ostream& out) {
    for (const std::string& line : lines) out << line << "\n";
    out.flush();
}

/// Truncates to at most `most` bytes, on a character boundary.
std::string truncate_to(std::string text, std::size_t most) {
    const auto inside = [&] { return (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U; };
    if (text.size() <= most) return text;
    while (most > 0 && inside()) --most;
    text.resize(most);
    return text;
}

/// A picture consists of colours, which a terminal that does not understand escape sequences would print as
/// text.
bool shows_no_picture(const top_options& o) { return ::isatty(STDOUT_FILENO) == 1 && !o.on_terminal; }

/// Adds a line with the frame's metadata and the picture below the tables, as far as the screen has room.
void add_picture(picture_pipe& p, screen_size size, u64 wait_ns, std::vector<std::string>& lines) {
    const std::size_t used = lines.size() + 1, room = size.rows > used ? size.rows - used : 0;
    p.ask(size.columns, room, wait_ns);
    const std::string why = !p.error_text().empty() ? printable(p.error_text())
                            : p.lines().empty()     ? "no picture has arrived yet"
                                                    : "";
    lines.push_back(truncate_to(why.empty() ? p.carried() : "no picture: " + why, size.columns));
    if (!why.empty()) return;
    for (std::size_t k = 0; k < std::min(room, p.lines().size()); ++k) lines.push_back(p.lines()[k]);
}

std::unique_ptr<picture_pipe> picture_of(const run::record& run, const top_options& o) {
    return o.image || !o.image_of.empty()
               ? std::make_unique<picture_pipe>(program_of_ours("carousel-peek", executable_folder()), run,
                                                o.image_of)
               : nullptr;
}

/// The interactive screen: draws, waits for a key or for news, and carries out what the user requests.
class live_screen {
public:
    live_screen(watcher& w, const run::record& run, const top_options& o)
        : watcher_(&w),
          run_(&run),
          options_(&o),
          interval_ns_(
              static_cast<u64>(std::clamp(o.interval_s, shortest_interval_s, longest_interval_s) * 1e9)),
          screen_(STDIN_FILENO, STDOUT_FILENO),
          picture_(picture_of(run, o)) {}

    /// Returns the exit code, or nothing if the run has ended; `last` is then the size of the screen.
    std::optional<int> show(screen_size& last) {
        watcher_->poll();
        u64 pictured = watcher_->blocks();
        u64 next = now_ns() + std::min(interval_ns_, first_span_ns);  // rates need two samples
        while (watcher_->is_running()) {
            draw();
            const screen_event e = wait(next);
            if (e.what == screen_event::kind::hung_up) return exit_code::ok;
            if (e.what == screen_event::kind::signal) return 128 + e.signal;
            if (e.what == screen_event::kind::key && !take(e.key, next)) return exit_code::ok;
            if (now_ns() < next) continue;
            watcher_->poll();
            // if the control block was replaced, the picture's mapping belongs to the earlier block
            if (std::exchange(pictured, watcher_->blocks()) != watcher_->blocks())
                picture_ = picture_of(*run_, *options_);
            next = now_ns() + interval_ns_;
        }
        last = screen_.size();
        return std::nullopt;
    }

private:
    void draw() {
        const screen_size size = screen_.size();
        top_input in = watcher_->input(options_->color, size);
        ui_.set_rows(stage_rows(in));
        const std::vector<std::string> footer = footer_lines(ui_, options_->color, size.columns, size.rows);
        in.rows = size.rows - std::min(size.rows, footer.size());
        std::vector<std::string> text;
        if (output_) text.assign(output_->lines().begin(), output_->lines().end());
        std::vector<std::string> lines = body_lines(in, ui_, text);
        if (picture_ && ui_.now() != interaction::mode::help && ui_.now() != interaction::mode::text)
            add_picture(*picture_, {size.columns, in.rows}, 0, lines);
        screen_.draw(with_footer(std::move(lines), footer, size.rows));
    }

    /// Waits until a key, a signal or news of the run, a command or the picture; at most until `next`, which
    /// becomes 0 after an event of the run. glance() detects crashes that would be missed while a slow
    /// picture is awaited; these crashes are shown at once.
    screen_event wait(u64& next) {
        const u64 until = picture_ ? std::min(next, now_ns() + picture_every_ns) : next;
        for (;;) {
            const u64 now = now_ns(), left = until > now ? until - now : 0;
            const screen_event e = screen_.wait(std::min(left, glance_every_ns));
            if (watcher_->glance()) next = 0;
            const bool news = poll_commands();
            if (e.what != screen_event::kind::timeout || left == 0 || next == 0 || news ||
                !watcher_->is_running())
                return e;
        }
    }

    /// Returns false if the key ends the display. Polls the run at once by setting `next` to 0.
    bool take(int key, u64& next) {
        const interaction::effect e = ui_.press(key);
        switch (e.what) {
            case interaction::effect::kind::none:
                return true;
            case interaction::effect::kind::quit:
                return false;
            case interaction::effect::kind::refresh:
                next = 0;
                return true;
            case interaction::effect::kind::command:
                action_ = start(e.words);
                return true;
            case interaction::effect::kind::show_text:
                output_ = start(e.words);
                return true;
            case interaction::effect::kind::close_text:
                output_.reset();
                return true;
        }
        return true;
    }

    [[nodiscard]] std::unique_ptr<command_run> start(const std::vector<std::string>& words) const {
        // the id: another run may have the name when the command begins
        std::vector<std::string> all{words.front(), "-p", run_->run_id};
        all.insert(all.end(), words.begin() + 1, words.end());
        return std::make_unique<command_run>(program_, all);
    }

    /// Takes what the commands have printed. Returns true if the screen has to change.
    bool poll_commands() {
        bool news = output_ && output_->poll();
        if (!action_) return news;
        action_->poll();
        const bool late = now_ns() - action_->started_ns() > action_patience_ns;
        if (!action_->succeeded() && !late) return news;
        std::string text;
        for (const std::string& line : action_->lines()) text += (text.empty() ? "" : " ") + line;
        if (late && !action_->succeeded()) text = "the command did not return, and was ended";
        ui_.finish(action_->succeeded().value_or(false), text);
        action_.reset();
        return true;
    }

    watcher* watcher_;
    const run::record* run_;
    const top_options* options_;
    u64 interval_ns_;
    std::string program_ = executable_folder() + "/carousel";
    terminal_screen screen_;
    std::unique_ptr<picture_pipe> picture_;
    interaction ui_;
    std::unique_ptr<command_run> action_, output_;
};

int show(watcher& w, const run::record& run, const top_options& o, std::ostream& out) {
    screen_size size;
    if (const std::optional<int> code = live_screen(w, run, o).show(size)) return *code;
    // the terminal has its earlier content again, and the last state stays readable there
    print(top_lines(w.input(o.color, size)), out);
    out << fmt::format("pipeline \"{}\" has ended: {}\n", run.name, w.ending());
    return exit_code::ok;
}

}  // namespace

int show_top(const run::record& run, const top_options& o, std::ostream& out) {
    watcher w(run);
    if (!o.once && o.on_terminal) return show(w, run, o, out);
    w.poll();
    ::usleep(static_cast<useconds_t>(first_span_ns / 1000));
    w.poll();
    std::vector<std::string> lines = top_lines(w.input(o.color, {0, 0}));
    if (shows_no_picture(o) && (o.image || !o.image_of.empty()))
        lines.emplace_back("no picture: this terminal shows no colours (TERM is not set, or \"dumb\")");
    else if (const std::unique_ptr<picture_pipe> picture = picture_of(run, o))
        add_picture(*picture, paper, picture_patience_ns, lines);
    print(lines, out);
    return exit_code::ok;
}

}  // namespace carousel::supervisor
