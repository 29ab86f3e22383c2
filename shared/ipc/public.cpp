// Implements <carousel/ipc.hpp> with the primitives: the handles, which give back the objects that they hold,
// and the messages of timeouts.
#include <fmt/format.h>

#include <algorithm>

#include "core/types.hpp"
#include "ipc/attachment.hpp"
#include "ipc/carousel/ipc.hpp"
#include "ipc/pool.hpp"
#include "ipc/semaphore.hpp"
#include "ipc/step.hpp"
#include "ipc/work_queue.hpp"

namespace carousel::ipc {
namespace {

u64 ns_of(nanoseconds t) { return t.count() < 0 ? 0 : static_cast<u64>(t.count()); }

semaphore semaphore_at(const attachment& a, u32 k) {
    return {a.block().block_of<semaphore_block>(k), a.epoch()};
}
queue queue_at(const attachment& a, u32 k) { return {a.block().block_of<queue_block>(k), a.epoch()}; }
work_queue work_at(const attachment& a, u32 k) {
    return {a.block().block_of<work_queue_block>(k), a.epoch()};
}
pool pool_at(const attachment& a, u32 k) { return {a.block().block_of<pool_block>(k), a.epoch()}; }

std::string holders_text(const attachment& a, const std::vector<u32>& epochs) {
    const std::string names = clients_text(a.block().registry, epochs);
    return (names.empty() ? "nobody" : names) +
           (a.held()
                ? ""
                : "; its holder has ended: `carousel hold` takes over and returns what dead clients held");
}

[[noreturn]] void late(const std::string& name, nanoseconds t, const std::string& why) {
    throw timed_out(fmt::format("\"{}\": timeout after {} ms: {}", name, t.count() / 1'000'000, why));
}

block block_in(const u64 (&what)[4]) {
    return {static_cast<u32>(what[0] & 0xFFFFFFFFU), static_cast<u32>(what[0] >> 32U), what[1]};
}

// Only a test hook can throw an exception during a release.
template <class Fn>
void quietly(Fn fn) noexcept {
    fn();
}

}  // namespace

held::held(held&& other) noexcept : to_(std::move(other.to_)), place_(other.place_) {
    std::copy(std::begin(other.what_), std::end(other.what_), what_);
    other.to_.reset();
}
held& held::operator=(held&& other) noexcept {
    to_ = std::move(other.to_);
    other.to_.reset();
    place_ = other.place_;
    std::copy(std::begin(other.what_), std::end(other.what_), what_);
    return *this;
}

std::shared_ptr<attachment> held::detach() noexcept {
    std::shared_ptr<attachment> to = std::move(to_);
    to_.reset();
    if (to && !to->is_here()) to.reset();
    return to;
}

// ---- semaphore

held_permit& held_permit::operator=(held_permit&& other) noexcept {
    if (this == &other) return *this;
    release();
    held::operator=(std::move(other));
    return *this;
}

void held_permit::release() noexcept {
    const std::shared_ptr<attachment> to = detach();
    if (!to) return;
    quietly([&] { (void)semaphore_at(*to, place_).release({static_cast<u32>(what_[0]), what_[1]}); });
}

std::optional<held_permit> shared_semaphore::try_acquire() {
    const std::optional<permit> p = semaphore_at(*to_, place_).try_acquire();
    if (!p) return std::nullopt;
    held_permit h(to_, place_);
    h.what_[0] = p->index, h.what_[1] = p->generation;
    return h;
}

held_permit shared_semaphore::acquire(nanoseconds timeout) {
    semaphore s = semaphore_at(*to_, place_);
    const std::optional<permit> p = s.acquire(ns_of(timeout));
    if (!p) late(name_, timeout, "its permits are held by " + holders_text(*to_, s.holders()));
    held_permit h(to_, place_);
    h.what_[0] = p->index, h.what_[1] = p->generation;
    return h;
}

u32 shared_semaphore::free() const { return semaphore_at(*to_, place_).free_permits(); }
u32 shared_semaphore::waiting() const { return semaphore_at(*to_, place_).waiting(); }

// ---- pool

held_block& held_block::operator=(held_block&& other) noexcept {
    if (this == &other) return *this;
    release();
    held::operator=(std::move(other));
    return *this;
}

void held_block::release() noexcept {
    const std::shared_ptr<attachment> to = detach();
    if (!to) return;
    quietly([&] { (void)pool_at(*to, place_).release(block_in(what_)); });
}

std::span<std::byte> held_block::data() const noexcept {
    if (!to_) return {};
    const auto bytes = static_cast<std::size_t>(what_[3]);
    if (to_->block().place[place_].shaped().what == kind::gpu_pool) {
        std::byte* const gpu = to_->gpu_base.load(std::memory_order_acquire);
        return gpu == nullptr ? std::span<std::byte>() : std::span(gpu + what_[2], bytes);
    }
    return {to_->block().at(what_[2]), bytes};
}

namespace {
void fill(const attachment& a, u32 place, const block& k, u64 (&what)[4]) {
    what[0] = u64{k.units} << 32U | k.unit;
    what[1] = k.serial;
    what[2] = pool_at(a, place).offset(k);
    what[3] = k.units * a.block().block_of<pool_block>(place).unit_bytes;
}
}  // namespace

std::optional<held_block> shared_pool::try_acquire(u64 bytes) {
    pool p = pool_at(*to_, place_);
    const std::optional<block> k = p.try_acquire(p.units_for(bytes));
    if (!k) return std::nullopt;
    held_block h(to_, place_);
    fill(*to_, place_, *k, h.what_);
    return h;
}

held_block shared_pool::acquire(u64 bytes, nanoseconds timeout) {
    pool p = pool_at(*to_, place_);
    const pool_state all = state();
    if (bytes > all.bytes)
        throw config_error(
            fmt::format("\"{}\": a block of {} bytes does not fit into a pool of {} bytes: request less, or "
                        "create a larger pool",
                        name_, bytes, all.bytes));
    const std::optional<block> k = p.acquire(p.units_for(bytes), ns_of(timeout));
    if (!k) {
        const pool_state now = state();
        late(name_, timeout,
             fmt::format("{} bytes were requested; {} of {} bytes are free, at most {} of them contiguous; "
                         "blocks are held by {}; {} blocks are in queues",
                         bytes, now.free_bytes, now.bytes, now.largest_free_bytes,
                         holders_text(*to_, p.owners()), now.travelling));
    }
    held_block h(to_, place_);
    fill(*to_, place_, *k, h.what_);
    return h;
}

pool_state shared_pool::state() const {
    const u64 unit = to_->block().block_of<pool_block>(place_).unit_bytes;
    const pool_use u = pool_at(*to_, place_).use();
    return {u.units * unit, u.free * unit, u.largest_free * unit, u.blocks, u.in_queue};
}

// ---- queue

u32 queue_base::size() const { return queue_at(*to_, place_).size(); }
u64 queue_base::lost() const { return queue_at(*to_, place_).lost(); }
u64 queue_base::tombs() const { return queue_at(*to_, place_).tombs(); }

namespace {
// The reason why an element could not be taken: the queue is empty, or its first element is not published
// yet.
std::string why_empty(const attachment& a, const queue& q) {
    const std::vector<u32> claimers = q.claimers();
    return claimers.empty() ? "it is empty"
                            : "the first element is being written by " + holders_text(a, claimers);
}
std::string why_full(const attachment& a, const queue& q) {
    return fmt::format("it is full: {} elements wait, others are held by {}", q.size(),
                       holders_text(a, q.leasers()));
}
}  // namespace

bool queue_base::try_push_bytes(const void* e) { return queue_at(*to_, place_).try_push(e); }
void queue_base::push_bytes(const void* e, nanoseconds t) {
    queue q = queue_at(*to_, place_);
    if (!q.push(e, ns_of(t))) late(name_, t, why_full(*to_, q));
}
bool queue_base::try_pop_bytes(void* e) { return queue_at(*to_, place_).try_pop(e); }
void queue_base::pop_bytes(void* e, nanoseconds t) {
    queue q = queue_at(*to_, place_);
    if (!q.pop(e, ns_of(t))) late(name_, t, why_empty(*to_, q));
}
std::optional<u64> queue_base::try_lease_bytes(void* e) {
    const std::optional<lease> l = queue_at(*to_, place_).try_lease(e);
    return l ? std::optional<u64>(l->ticket) : std::nullopt;
}
u64 queue_base::lease_bytes(void* e, nanoseconds t) {
    queue q = queue_at(*to_, place_);
    const std::optional<lease> l = q.lease_one(e, ns_of(t));
    if (!l) late(name_, t, why_empty(*to_, q));
    return l->ticket;
}

lease_base& lease_base::operator=(lease_base&& other) noexcept {
    if (this == &other) return *this;
    requeue();
    held::operator=(std::move(other));
    return *this;
}
void lease_base::commit() noexcept {
    const std::shared_ptr<attachment> to = detach();
    if (to) quietly([&] { (void)queue_at(*to, place_).commit({what_[0]}); });
}
void lease_base::requeue() noexcept {
    const std::shared_ptr<attachment> to = detach();
    if (to) quietly([&] { (void)queue_at(*to, place_).requeue({what_[0]}); });
}

// ---- blocks through queues

bool block_queue_base::try_send_bytes(held_block& h, void* element) {
    if (!h.to_ || h.to_ != to_ || h.place_ != pool_.place_)
        throw config_error(fmt::format(
            "\"{}\" carries blocks of \"{}\", but the block belongs to another pool, or is no longer held",
            name_, pool_.name_));
    pool p = pool_at(*to_, pool_.place_);
    queue q = queue_at(*to_, place_);
    if (!try_send(p, block_in(h.what_), q, element)) return false;
    h.to_.reset();
    return true;
}

std::optional<held_block> block_queue_base::try_receive_bytes(void* element) {
    pool p = pool_at(*to_, pool_.place_);
    queue q = queue_at(*to_, place_);
    bool damaged = false;
    const std::optional<block> k = try_receive(q, p, element, &damaged);
    if (damaged)
        throw shm_error(fmt::format(
            "\"{}\": an element does not name a block of \"{}\": the space is damaged, hold it again", name_,
            pool_.name_));
    if (!k) return std::nullopt;
    held_block h(to_, pool_.place_);
    fill(*to_, pool_.place_, *k, h.what_);
    return h;
}

void block_queue_base::send_bytes(held_block& h, void* element, nanoseconds t) {
    queue_block& b = to_->block().block_of<queue_block>(place_);
    const u64 deadline = deadline_after(ns_of(t));
    for (;;) {
        const u32 seen = shm::ticket(b.bell);
        if (try_send_bytes(h, element)) return;
        if (!sleep_until(b.bell, seen, deadline)) late(name_, t, why_full(*to_, queue_at(*to_, place_)));
    }
}

held_block block_queue_base::receive_bytes(void* element, nanoseconds t) {
    queue_block& b = to_->block().block_of<queue_block>(place_);
    const u64 deadline = deadline_after(ns_of(t));
    for (;;) {
        const u32 seen = shm::ticket(b.bell);
        if (auto got = try_receive_bytes(element)) return std::move(*got);
        if (!sleep_until(b.bell, seen, deadline)) late(name_, t, why_empty(*to_, queue_at(*to_, place_)));
    }
}

// ---- work queue

task_state_now work_queue_base::state_of(const task_id& t) const {
    return static_cast<task_state_now>(work_at(*to_, place_).fate({t.place, t.generation}));
}
u32 work_queue_base::waiting() const { return work_at(*to_, place_).count(task_state::waiting); }
u32 work_queue_base::dead_letters() const { return work_at(*to_, place_).count(task_state::dead_letter); }

std::optional<task_id> work_queue_base::try_submit_bytes(const void* task) {
    const std::optional<task_name> n = work_at(*to_, place_).try_submit(task);
    return n ? std::optional<task_id>({n->place, n->generation}) : std::nullopt;
}
task_id work_queue_base::submit_bytes(const void* task, nanoseconds t) {
    work_queue w = work_at(*to_, place_);
    const std::optional<task_name> n = w.submit(task, ns_of(t));
    if (!n)
        late(name_, t,
             fmt::format("it is full: {} tasks wait, {} are dead letters, others are claimed by {}",
                         waiting(), dead_letters(), holders_text(*to_, w.claimers())));
    return {n->place, n->generation};
}
bool work_queue_base::try_claim_bytes(void* task, u64 (&what)[4]) {
    const std::optional<claimed_task> c = work_at(*to_, place_).try_claim(task);
    if (!c) return false;
    what[0] = c->name.place, what[1] = c->name.generation, what[2] = c->attempts;
    return true;
}
void work_queue_base::claim_bytes(void* task, u64 (&what)[4], nanoseconds t) {
    work_queue w = work_at(*to_, place_);
    const std::optional<claimed_task> c = w.claim(task, ns_of(t));
    if (!c) late(name_, t, "no task waits; some are claimed by " + holders_text(*to_, w.claimers()));
    what[0] = c->name.place, what[1] = c->name.generation, what[2] = c->attempts;
}
bool work_queue_base::take_dead_letter_bytes(void* task) {
    return work_at(*to_, place_).take_dead_letter(task).has_value();
}

task_base::task_base(std::shared_ptr<attachment> to, u32 place, const u64 (&what)[4])
    : held(std::move(to), place) {
    std::copy(std::begin(what), std::end(what), what_);
}
task_base& task_base::operator=(task_base&& other) noexcept {
    if (this == &other) return *this;
    fail();
    held::operator=(std::move(other));
    return *this;
}
void task_base::commit() noexcept {
    const std::shared_ptr<attachment> to = detach();
    if (to)
        quietly([&] {
            (void)work_at(*to, place_).commit({{id().place, id().generation}, failed_attempts()});
        });
}
void task_base::fail() noexcept {
    const std::shared_ptr<attachment> to = detach();
    if (to)
        quietly([&] { (void)work_at(*to, place_).fail({{id().place, id().generation}, failed_attempts()}); });
}

// ---- space

shared_semaphore space::semaphore(const std::string& name, u32 permits) {
    return {to_, to_->place(name, {kind::semaphore, permits, 0, 0}), name};
}
shared_pool space::pool(const std::string& name, u64 bytes, u64 unit_bytes) {
    const u64 unit = std::max<u64>(unit_bytes, 1);
    return {to_, to_->place(name, {kind::pool, round_up_sat(bytes, unit), unit_bytes, 0}), name};
}
primitive space::queue_of(const std::string& name, u32 cells, u64 bytes, const shared_pool* pool, u64 type) {
    const u64 carried = pool == nullptr ? 0 : u64{place_of(*pool)} + 1;
    return primitive(to_, to_->place(name, {kind::queue, cells, bytes, carried, type}), name);
}
primitive space::work_queue_of(const std::string& name, u32 tasks, u64 bytes, u32 attempts, u64 type) {
    return primitive(to_, to_->place(name, {kind::work_queue, tasks, bytes, attempts, type}), name);
}
bool space::is_held() const noexcept { return to_->held(); }

space open(const std::string& name, const open_options& options) {
    return space(std::make_shared<attachment>(name, options.wait_s));
}

}  // namespace carousel::ipc
