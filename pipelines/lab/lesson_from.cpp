#include <fmt/format.h>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "lab/lesson.hpp"

namespace carousel::lab {

const lesson& lesson_from(const std::string& word) {
    std::vector<std::string> names;
    for (const lesson* l : all_lessons()) {
        if (word == std::to_string(l->number) || word == fmt::format("{:02}", l->number) || word == l->name ||
            word == fmt::format("{:02}_{}", l->number, l->name))
            return *l;
        names.emplace_back(l->name);
    }
    throw config_error(fmt::format("lab: unknown lesson \"{}\"{}; `carousel lab` lists all lessons", word,
                                   did_you_mean_clause(word, names)));
}

}  // namespace carousel::lab
