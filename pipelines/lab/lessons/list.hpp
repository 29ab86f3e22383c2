#pragma once
// All lessons; each is defined in its own folder.

#include "lab/lesson.hpp"

namespace carousel::lab {

extern const lesson handles_lesson, events_lesson, order_lesson, bandwidth_lesson, coherence_lesson,
    frames_lesson, queue_lesson, work_lesson, pool_lesson, semaphore_lesson, descriptors_lesson,
    isolation_lesson, server_lesson, ranks_lesson, tenants_lesson;

}  // namespace carousel::lab
