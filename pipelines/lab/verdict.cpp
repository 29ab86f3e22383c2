#include "lab/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plot/chart.hpp"

namespace carousel::lab {
namespace {

/// Returns "a = 1, b = 0.5" for all figures in the claim's conditions; "b is missing" for an absent one.
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

}  // namespace carousel::lab
