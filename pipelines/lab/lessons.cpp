#include "lab/lessons/list.hpp"

namespace carousel::lab {

std::span<const lesson* const> all_lessons() noexcept {
    static constexpr const lesson* all[] = {
        &handles_lesson,     &events_lesson,    &order_lesson,  &bandwidth_lesson, &coherence_lesson,
        &frames_lesson,      &queue_lesson,     &work_lesson,   &pool_lesson,      &semaphore_lesson,
        &descriptors_lesson, &isolation_lesson, &server_lesson, &ranks_lesson,     &tenants_lesson,
    };
    return all;
}

}  // namespace carousel::lab
