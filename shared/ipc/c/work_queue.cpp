// Work queues of <carousel/space.h>.
#include "ipc/c/handles.hpp"

using namespace carousel;
using namespace carousel::ipc;
using namespace carousel::ipc::c;

static_assert(static_cast<int>(task_state_now::waiting) == CAROUSEL_TASK_WAITING &&
              static_cast<int>(task_state_now::claimed) == CAROUSEL_TASK_CLAIMED &&
              static_cast<int>(task_state_now::dead_letter) == CAROUSEL_TASK_DEAD_LETTER &&
              static_cast<int>(task_state_now::over) == CAROUSEL_TASK_OVER);

carousel_status carousel_work_queue_open(carousel_space* space, const char* name, uint32_t tasks,
                                         uint32_t task_bytes, uint32_t max_attempts, const char* type,
                                         carousel_work_queue** queue) {
    return call([&] {
        carousel_space& s = valid(space, "carousel_work_queue_open");
        const char* const named = &required(name, "carousel_work_queue_open: name");
        carousel_work_queue*& to = required(queue, "carousel_work_queue_open: queue");
        const u32 place =
            s.to->place(named, {kind::work_queue, tasks, task_bytes, max_attempts, type_of(type)});
        to = new carousel_work_queue(s.to, place, named);
        return CAROUSEL_OK;
    });
}

carousel_status carousel_work_queue_close(carousel_work_queue* queue) {
    return end(queue, "carousel_work_queue_close");
}

carousel_status carousel_work_queue_submit(carousel_work_queue* queue, const void* task, int64_t timeout_ns,
                                           carousel_task_id* id) {
    return call([&] {
        carousel_work_queue& q = valid(queue, "carousel_work_queue_submit");
        require_bytes(task, "carousel_work_queue_submit: task");
        const auto got = [&](const task_id& is) {
            if (id != nullptr) *id = {is.place, is.generation};
        };
        const auto once = [&] {
            const std::optional<task_id> is = q.is.try_submit_bytes(task);
            if (is) got(*is);
            return is.has_value();
        };
        return attempt(timeout_ns, q.is.name(), once,
                       [&](nanoseconds t) { got(q.is.submit_bytes(task, t)); });
    });
}

carousel_status carousel_work_queue_claim(carousel_work_queue* queue, void* task, int64_t timeout_ns,
                                          carousel_task** claimed) {
    return call([&] {
        carousel_work_queue& q = valid(queue, "carousel_work_queue_claim");
        require_bytes(task, "carousel_work_queue_claim: task");
        carousel_task*& to = required(claimed, "carousel_work_queue_claim: claimed");
        u64 what[4] = {};
        const auto got = [&] {
            any_task t(q.to, q.is.place(), what);  // fails the task if there is no memory
            to = new carousel_task(q.to, std::move(t));
        };
        const auto once = [&] {
            if (!q.is.try_claim_bytes(task, what)) return false;
            got();
            return true;
        };
        return attempt(timeout_ns, q.is.name(), once, [&](nanoseconds t) {
            q.is.claim_bytes(task, what, t);
            got();
        });
    });
}

carousel_status carousel_work_queue_take_dead_letter(carousel_work_queue* queue, void* task) {
    return call([&] {
        carousel_work_queue& q = valid(queue, "carousel_work_queue_take_dead_letter");
        require_bytes(task, "carousel_work_queue_take_dead_letter: task");
        return q.is.take_dead_letter_bytes(task) ? CAROUSEL_OK : not_at_once(q.is.name());
    });
}

carousel_status carousel_work_queue_get_task_state(carousel_work_queue* queue, carousel_task_id id,
                                                   carousel_task_state* state) {
    return call([&] {
        carousel_work_queue& q = valid(queue, "carousel_work_queue_get_task_state");
        carousel_task_state& to = required(state, "carousel_work_queue_get_task_state: state");
        if (id.place >= q.to->block().place[q.is.place()].count)
            throw failure(CAROUSEL_INVALID_ARGUMENT,
                          "carousel_work_queue_get_task_state: the id is not of this work queue");
        to = static_cast<carousel_task_state>(q.is.state_of({id.place, id.generation}));
        return CAROUSEL_OK;
    });
}

carousel_status carousel_work_queue_get_state(carousel_work_queue* queue, carousel_work_queue_state* state) {
    return call([&] {
        carousel_work_queue& q = valid(queue, "carousel_work_queue_get_state");
        fill(state, carousel_work_queue_state{0, q.is.waiting(), q.is.dead_letters()},
             "carousel_work_queue_get_state: state");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_task_get_info(carousel_task* task, carousel_task_info* info) {
    return call([&] {
        carousel_task& t = valid(task, "carousel_task_get_info");
        const task_id id = t.is.id();
        fill(info, carousel_task_info{0, {id.place, id.generation}, t.is.failed_attempts(), 0},
             "carousel_task_get_info: info");
        return CAROUSEL_OK;
    });
}

carousel_status carousel_task_commit(carousel_task* task) {
    return call([&] {
        valid(task, "carousel_task_commit").is.commit();
        return end(task, "carousel_task_commit");
    });
}

carousel_status carousel_task_fail(carousel_task* task) { return end(task, "carousel_task_fail"); }
