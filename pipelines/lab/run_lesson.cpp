#include "lab/run_lesson.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "os/subprocess.hpp"
#include "plot/chart.hpp"
#include "spaces/spaces.hpp"

namespace carousel::lab {
namespace {

/// Returns a text such as "a = 1, b = 0.5" with all figures in the claim's conditions; for an absent figure
/// the text is "b is missing".
std::string figures_of_claim(const claim& c, const figures& f) {
    std::vector<std::string> names;
    std::string text;
    for (const explanation_row& row : c.rows)
        for (const condition& one : row.when) {
            if (std::find(names.begin(), names.end(), one.figure) != names.end()) continue;
            names.emplace_back(one.figure);
            const auto at = f.values.find(one.figure);
            text += text.empty() ? "" : ", ";
            text += at == f.values.end() ? fmt::format("{} is missing", one.figure)
                                         : fmt::format("{} = {:.4g}", one.figure, at->second);
        }
    return text;
}

constexpr const char* gpu = "gpu";

std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    if (end == std::string::npos) return "";
    const std::size_t begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

/// Marks every need of a GPU as missing: "gpu", "two_gpus", "two_gpu_users" and "mps", and every need of a
/// claim if the need's name begins with "gpu".
void without_gpu(const lesson& l, figures& f, const std::string& why) {
    for (const char* need : {gpu, "two_gpus", "two_gpu_users", "mps"}) f.missing.emplace(need, why);
    for (const claim& c : l.claims)
        if (std::string(c.needs).starts_with(gpu)) f.missing.emplace(c.needs, why);
}

/// Returns null if the lesson needs no space. Also returns null, and marks the GPU's needs as missing in `f`,
/// if the space cannot be held because there is no GPU.
std::unique_ptr<supervisor::held_space> space_for(const lesson& l, bool of_gpu, const lab_places& places,
                                                  figures& f) {
    if (!l.space) return nullptr;
    try {
        return std::make_unique<supervisor::held_space>(places.programs, "lab", of_gpu ? "cuda:0" : "cpu");
    } catch (const device_error& e) {
        without_gpu(l, f, e.what());
        return nullptr;
    }
}

void run_program(const lesson& l, const lesson_program& p, const lab_places& places, lesson_result& r) {
    const std::string program = places.programs + "/" + p.name;
    const bool of_gpu = std::strcmp(p.needs, gpu) == 0;
    if (::access(program.c_str(), X_OK) != 0) {
        if (of_gpu)
            without_gpu(l, r.measured, fmt::format("built without CUDA: {} does not exist", p.name));
        else
            r.failures.push_back(
                fmt::format("{}: {}; build it by `cmake --build {} --target programs`, or reinstall Carousel",
                            program, errno_text(errno), places.programs));
        return;
    }
    const auto space = space_for(l, of_gpu, places, r.measured);
    if (l.space && !space) return;
    std::vector<std::string> words{program};
    if (space) words.push_back(space->name());
    const supervisor::subprocess_result got = supervisor::run_subprocess(words, "", p.limit_s * 1000);
    if (got.started && !got.timed_out && got.signal == 0 && got.exit_code == exit_code::no_device && of_gpu) {
        without_gpu(l, r.measured, last_line(got.messages));
        return;
    }
    try {
        read_figures(got.output, r.measured);
    } catch (const config_error& e) {
        r.failures.push_back(fmt::format("{} printed {}", p.name, e.what()));
    }
    if (!got.succeeded())
        r.failures.push_back(
            fmt::format("{}: {}: {}", p.name, got.ending(p.limit_s * 1000), last_line(got.messages)));
}

}  // namespace

bool holds(const condition& c, const figures& f) noexcept {
    const auto at = f.values.find(c.figure);
    if (at == f.values.end()) return false;
    switch (c.is) {
        case relation::below:
            return at->second < c.bound;
        case relation::above:
            return at->second > c.bound;
        case relation::equal:
            return at->second == c.bound;
    }
    return false;
}

std::string filled(const char* text, const figures& f) {
    std::string out;
    for (const char* at = text; *at != 0;) {
        const char* end = *at == '{' ? std::strchr(at, '}') : nullptr;
        if (end == nullptr) {
            out += *at++;
            continue;
        }
        const auto value = f.values.find(std::string(at + 1, end));
        out += value == f.values.end() ? "?" : plot::value_text(value->second);
        at = end + 1;
    }
    return out;
}

claim_verdict judge(const claim& c, const figures& f) {
    claim_verdict v;
    v.about = &c;
    if (const auto why = f.missing.find(c.needs); why != f.missing.end()) {
        v.what = outcome::unavailable, v.text = why->second;
        return v;
    }
    for (std::size_t k = 0; k < c.rows.size(); ++k) {
        const explanation_row& row = c.rows[k];
        if (row.when.empty() || !std::all_of(row.when.begin(), row.when.end(),
                                             [&](const condition& one) { return holds(one, f); }))
            continue;
        v.what = outcome::explained, v.text = filled(row.text, f), v.answer = row.answer, v.row = k;
        return v;
    }
    v.text = fmt::format("no explanation fits the measured figures: {}", figures_of_claim(c, f));
    return v;
}

std::vector<claim_verdict> judge(const lesson& l, const figures& f) {
    std::vector<claim_verdict> all;
    for (const claim& c : l.claims) all.push_back(judge(c, f));
    return all;
}

recording recording_from(const std::string& text) {
    recording r;
    const std::size_t end = text.find('\n');
    if (end == std::string::npos) return r;
    r.machine = text.substr(0, end);
    read_figures(text.substr(end + 1), r.measured);
    return r;
}

void add_recorded(const recording& from, std::vector<claim_verdict>& all) {
    for (claim_verdict& v : all) {
        if (v.what != outcome::unavailable) continue;
        if (const claim_verdict then = judge(*v.about, from.measured); then.what == outcome::explained)
            v.recorded = then.text;
    }
}

std::vector<unavailable> unavailable_claims(const std::vector<claim_verdict>& all) {
    std::vector<unavailable> reasons;
    for (const claim_verdict& v : all) {
        if (v.what != outcome::unavailable) continue;
        auto at = std::find_if(reasons.begin(), reasons.end(),
                               [&](const unavailable& n) { return n.reason == v.text; });
        if (at == reasons.end()) at = reasons.insert(at, unavailable{v.text, "", 0});
        if (!v.recorded.empty())
            ++at->recorded;
        else
            at->names += (at->names.empty() ? "" : "; ") + std::string(v.about->name);
    }
    return reasons;
}

std::optional<int> right_answer(const lesson& l, const std::vector<claim_verdict>& all) {
    for (const claim_verdict& v : all)
        if (std::strcmp(v.about->name, l.decided_by) == 0 && v.what == outcome::explained &&
            v.answer != no_answer)
            return v.answer;
    return std::nullopt;
}

bool lesson_result::passed() const noexcept {
    return failures.empty() && std::none_of(verdicts.begin(), verdicts.end(), [](const claim_verdict& v) {
               return v.what == outcome::unexplained;
           });
}

lesson_result run_lesson(const lesson& l, const lab_places& places,
                         const std::function<void(const std::string&)>& report_progress) {
    lesson_result r;
    r.about = &l;
    const u64 begin = now_ns();
    try {
        for (const lesson_program& p : l.programs) {
            report_progress(fmt::format("lesson {} ({}): {}", l.number, l.name, p.name));
            run_program(l, p, places, r);
        }
    } catch (const error& e) {
        r.failures.emplace_back(e.what());
    }
    r.verdicts = judge(l, r.measured);
    const recording recorded = recording_from(recorded_of(l));
    r.recorded_on = recorded.machine;
    add_recorded(recorded, r.verdicts);
    r.seconds = static_cast<f64>(now_ns() - begin) / 1e9;
    return r;
}

}  // namespace carousel::lab
