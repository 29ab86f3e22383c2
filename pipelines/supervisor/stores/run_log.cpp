#include "supervisor/stores/run_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <utility>

#include "core/io.hpp"
#include "core/json_text.hpp"

namespace carousel::supervisor {
namespace {

using nlohmann::json;
/// more lines than one death has steps; this limits the length of the file
constexpr u64 lines_a_death = 8;

template <typename T>
void keep(T& old, const T& fresh) {
    if (fresh != T{}) old = fresh;
}

std::string line_of(const recovery& r) {
    return json(r).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

template <typename From, typename To>
std::vector<f64> spans(const std::vector<recovery>& all, From from, To to) {
    std::vector<f64> out;
    for (const recovery& r : all)
        if (from(r) != 0 && to(r) >= from(r)) out.push_back(static_cast<f64>(to(r) - from(r)) / 1e6);
    return out;
}

constexpr std::size_t kept = 2000, max_notes_per_reply = 300;

}  // namespace

recovery_log::recovery_log(const std::string& path, std::size_t keep) : path_(path), keep_(keep) {
    std::ifstream before(path);
    for (std::string line; std::getline(before, line); ++lines_) {
        const json j = parse_json_or_discard(line, json_channel::document);
        if (!j.is_object()) continue;
        try {
            if (j.contains("dropped"))
                dropped_ = j["dropped"].get<u64>();
            else
                merge(recovery_from(j));
        } catch (const json::exception&) {  // of another version
        }
        drop_old();
    }
    file_.reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
}

void recovery_log::drop_old() {
    if (all_.size() <= keep_ + keep_ / 4) return;
    const std::size_t old = all_.size() - keep_;
    all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(old));
    dropped_ += old;
}

void recovery_log::append(const std::string& line) {
    if (file_ && !write_whole(file_.get(), line.data(), line.size())) file_.reset();
    ++lines_;
}

void recovery_log::rewrite() {
    const std::string aside = path_ + ".tmp";
    file_.reset(::open(aside.c_str(), O_WRONLY | O_TRUNC | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    lines_ = 0;
    append(json{{"dropped", dropped_}}.dump() + "\n");
    for (const recovery& r : all_) append(line_of(r));
    if (file_ && std::rename(aside.c_str(), path_.c_str()) == 0) return;
    ::unlink(aside.c_str());  // a failure, e.g. on a full disk: the log continues in the old file
    file_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
}

void recovery_log::merge(const recovery& r) {
    const auto is_it = [&](const recovery& o) {
        return o.pid == r.pid && o.epoch == r.epoch && o.seat == r.seat;
    };
    // searches backwards, because most reports concern the newest deaths
    const auto at = std::find_if(all_.rbegin(), all_.rend(), is_it);
    if (at == all_.rend()) {
        all_.push_back(r);
        return;
    }
    const u64 seen_ns = at->seen_ns;
    for_each_field<recovery>([&](auto field) { keep(*at.*field.pointer, r.*field.pointer); });
    // the time of the first report is kept, because the first supervisor has detected the death earliest
    if (seen_ns != 0) at->seen_ns = seen_ns;
}

void recovery_log::report(const recovery& r) {
    merge(r);
    drop_old();
    append(line_of(r));
    if (file_ && lines_ > lines_a_death * keep_) rewrite();
}

recovery recovery_from(const json& j) { return j.get<recovery>(); }
json recoveries_json(const std::vector<recovery>& all) { return all; }

std::vector<f64> detections_ms(const std::vector<recovery>& all) {
    return spans(
        all, [](const recovery& r) { return r.signalled_ns; }, [](const recovery& r) { return r.seen_ns; });
}
std::vector<f64> fences_ms(const std::vector<recovery>& all) {
    return spans(
        all, [](const recovery& r) { return r.seen_ns; }, [](const recovery& r) { return r.fenced_ns; });
}
std::vector<f64> takeovers_ms(const std::vector<recovery>& all, bool standbys_only) {
    return spans(
        all, [](const recovery& r) { return r.signalled_ns != 0 ? r.signalled_ns : r.seen_ns; },
        [&](const recovery& r) { return standbys_only && !r.standby ? 0 : r.followed_ns; });
}

takeover_parts parts_of_takeovers_ms(const std::vector<recovery>& all) {
    const auto by_itself = [](u64 recovery::*when) {
        return [when](const recovery& r) { return r.standby || r.ready_ns == 0 ? 0 : r.*when; };
    };
    const auto died = [](const recovery& r) { return r.signalled_ns != 0 ? r.signalled_ns : r.seen_ns; };
    return {spans(all, died, by_itself(&recovery::started_ns)),
            spans(all, by_itself(&recovery::started_ns), by_itself(&recovery::attached_ns)),
            spans(all, by_itself(&recovery::attached_ns), by_itself(&recovery::ready_ns)),
            spans(all, by_itself(&recovery::ready_ns), by_itself(&recovery::followed_ns))};
}

std::vector<f64> domains_back_ms(const std::vector<recovery>& all) {
    struct span {
        u64 first = ~u64{0}, last = 0;
    };
    std::map<u64, span> ends;
    for (const recovery& r : all) {
        if (r.domain_end == 0 || r.seen_ns == 0 || r.followed_ns == 0) continue;
        span& s = ends[r.domain_end];
        s.first = std::min(s.first, r.seen_ns);
        s.last = std::max(s.last, r.followed_ns);
    }
    std::vector<f64> out;
    out.reserve(ends.size());
    for (const auto& [end, s] : ends) out.push_back(static_cast<f64>(s.last - s.first) / 1e6);
    return out;
}

void run_notes::add(run_note n) {
    n.id = ++last_;
    notes_.push_back(std::move(n));
    if (notes_.size() > kept) notes_.pop_front();
}

run::trace_answer run_notes::since(u64 id) const {
    run::trace_answer a;
    // an id above last_ comes from an earlier supervisor, so the answer starts with the first note
    a.next = last_ < id ? 0 : id;
    for (const run_note& n : notes_) {
        if (n.id <= a.next || a.notes.size() >= max_notes_per_reply) continue;
        a.notes.push_back({n.time_ns, n.kind, n.seat, n.epoch, n.pid, n.text});
        a.next = n.id;
    }
    a.last = last_;
    return a;
}

}  // namespace carousel::supervisor
