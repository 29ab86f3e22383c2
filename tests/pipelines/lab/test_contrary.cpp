// Each lesson is fed figures that contradict it: it must fail, or choose the other explanation.
#include <algorithm>
#include <cstring>

#include "lab/lesson.hpp"
#include "lab/verdict.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::lab;

namespace {

constexpr std::size_t fails = 99;

struct contrary {
    const char* lesson;
    const char* claim;
    std::map<std::string, f64> usual;   ///< with these the first row is told
    std::map<std::string, f64> change;  ///< these contradict it
    std::size_t row = fails;            ///< that is told then
};

const contrary all_contraries[] = {
    {"order",
     "CUDA: two programs that were started apart",
     {{"cuda.consumer_first.code", 0}, {"cuda.producer_first.code", 0}},
     {{"cuda.consumer_first.code", 4}}},
    {"order",
     "CUDA: the producer has ended when the consumer comes",
     {{"cuda.ended.code", 5}},
     {{"cuda.ended.code", 0}},
     1},
    {"coherence",
     "CUDA: a plain load in a kernel's loop",
     {{"cuda.plain.sees", 0}},
     {{"cuda.plain.sees", 1}},
     1},
    {"coherence",
     "CUDA: a volatile, a relaxed and an acquire load",
     {{"cuda.volatile.sees", 1}, {"cuda.relaxed.sees", 1}, {"cuda.acquire.sees", 1}},
     {{"cuda.acquire.sees", 0}}},
    {"coherence",
     "CUDA: a hop between two spinning kernels, in time slices",
     {{"cuda.slices.hop_us", 2200}},
     {{"cuda.slices.hop_us", 5}},
     1},
    {"coherence",
     "CUDA: data beside a flag",
     {{"cuda.acquire.torn", 0}, {"cuda.relaxed.torn", 9}},
     {{"cuda.acquire.torn", 1}}},
    {"frames", "no status word", {{"bare.torn", 1}}, {{"bare.torn", 0}}, 1},
    {"frames",
     "a status word that says what, and not whose",
     {{"naive.got", 4}, {"naive.wrong", 0}},
     {{"naive.got", 20}},
     1},
    {"frames",
     "the successor clears the ring",
     {{"reset.got", 16}, {"reset.wrong", 0}},
     {{"reset.wrong", 2}}},
    {"frames",
     "words with an owner, twenty kills",
     {{"owned.complete", 1},
      {"owned.lost", 0},
      {"owned.repeated", 0},
      {"owned.torn", 0},
      {"owned.mid_write", 5}},
     {{"owned.torn", 1}}},
    {"frames",
     "CUDA: a frame that a kernel writes, its process killed",
     {{"cuda.late.ms", 40}, {"cuda.late.behind_fence", 0}},
     {{"cuda.late.behind_fence", 3}}},
    {"frames",
     "CUDA: the ring goes on",
     {{"cuda.frames.got", 20}, {"cuda.frames.wrong", 0}},
     {{"cuda.frames.got", 19}}},
    {"descriptors",
     "ten lives, one memory",
     {{"lives.number", 10}, {"lives.damaged", 0}, {"lives.count", 10}},
     {{"lives.damaged", 1}}},
    {"descriptors",
     "its holder is killed, too",
     {{"orphan.count", 10}, {"memfd.left", 0}},
     {{"memfd.left", 1}}},
    {"descriptors",
     "one client makes it shorter",
     {{"unsealed.signal", 7}, {"sealed.signal", 0}, {"sealed.code", 1}},
     {{"sealed.signal", 7}}},
    {"descriptors",
     "CUDA: three lives, one memory",
     {{"cuda.lives.number", 3}, {"cuda.lives.damaged", 0}},
     {{"cuda.lives.damaged", 1}}},
    {"descriptors",
     "CUDA: memory of a GPU that no process uses",
     {{"cuda.held.share", 1}, {"cuda.freed.share", 0}},
     {{"cuda.held.share", 0}},
     1},
    {"isolation", "a turn", {{"processes.ratio", 1.1}}, {{"processes.ratio", 2}}, 1},
    {"isolation",
     "a thread writes to where nothing is",
     {{"threads.survives", 0}},
     {{"threads.survives", 1}},
     1},
    {"isolation",
     "a process writes to where nothing is",
     {{"processes.survives", 1}},
     {{"processes.survives", 0}}},
    {"isolation", "CUDA: a hop in time slices", {{"cuda.slices.ratio", 17}}, {{"cuda.slices.ratio", 1}}, 1},
    {"isolation",
     "CUDA: a neighbour's kernel faults, under MPS",
     {{"cuda.mps.code", 700}, {"cuda.mps.faulty", 700}},
     {{"cuda.mps.code", 0}},
     1},
    {"server", "requests dealt by turns", {{"dealt.lost", 95}}, {{"dealt.lost", 0}}, 1},
    {"server", "requests claimed from a space", {{"anew.lost", 0}, {"anew.wrong", 0}}, {{"anew.lost", 1}}},
    {"server",
     "a standby takes the place",
     {{"standby.lost", 0}, {"standby.wrong", 0}, {"standby.gain", 20}},
     {{"standby.gain", 0.5}},
     1},
    {"server",
     "a worker writes into the weights",
     {{"stray.signal", 11}, {"stray.whole", 1}},
     {{"stray.whole", 0}}},
    {"ranks", "a ring of ranks", {{"ring.wrong", 0}}, {{"ring.wrong", 1}}},
    {"ranks",
     "a block of 8 MiB, by offset and by copies",
     {{"offset.share", 0.01}},
     {{"offset.share", 1}},
     1},
    {"ranks", "MPI_Send", {{"mpi.share", 0.1}, {"mpi.wrong", 0}}, {{"mpi.wrong", 1}}},
    {"ranks", "MPI_Send", {{"mpi.share", 0.1}, {"mpi.wrong", 0}}, {{"mpi.share", 3}}, 1},
    {"ranks",
     "a rank is killed with a block",
     {{"ranks.mpi", 1}, {"killed.free", 4}, {"killed.left", 0}},
     {{"killed.free", 3}}},
    {"tenants",
     "a memfd of another user",
     {{"other.proc_fd", 0},
      {"other.vm_readv", 0},
      {"other.pidfd_getfd", 0},
      {"other.signal", 0},
      {"other.given", 1}},
     {{"other.proc_fd", 1}}},
    {"tenants",
     "processes of one user",
     {{"same.proc_fd", 1}, {"same.signal", 1}, {"same.environ", 1}, {"same.vm_readv", 1}},
     {{"same.vm_readv", 0}},
     1},
    {"tenants", "a space of another user", {{"other.space", 0}}, {{"other.space", 1}}},
    {"tenants", "new memory", {{"same.fresh", 0}}, {{"same.fresh", 1}}},
    {"tenants",
     "CUDA: what a dead tenant leaves in memory",
     {{"cuda.leftover.words", 0}, {"cuda.leftover.share", 0.9}},
     {{"cuda.leftover.words", 5}},
     1},
    {"queue", "a claimed place whose producer is dead", {{"naive.got", 0}}, {{"naive.got", 10}}, 1},
    {"queue", "two producers, one consumer", {{"held.wrong", 0}}, {{"held.wrong", 1}}},
    {"queue", "a leased element whose consumer is dead", {{"leased.again", 2}}, {{"leased.again", 0}}},
    {"queue",
     "CUDA: a claimed place whose producer is dead",
     {{"cuda.naive.claimed", 11}, {"cuda.naive.got", 0}},
     {{"cuda.naive.got", 10}},
     1},
    {"queue",
     "CUDA: the kernels of two producers, those of a consumer",
     {{"cuda.held.got", 40000}, {"cuda.held.wrong", 0}},
     {{"cuda.held.got", 39999}}},
    {"queue",
     "CUDA: killed while thousands of threads push and pop",
     {{"cuda.storm.got", 10}, {"cuda.storm.left", 0}, {"cuda.storm.tombs", 7}},
     {{"cuda.storm.got", 9}}},
    {"queue",
     "CUDA: killed while thousands of threads push and pop",
     {{"cuda.storm.got", 10}, {"cuda.storm.left", 0}, {"cuda.storm.tombs", 7}},
     {{"cuda.storm.tombs", 0}},
     1},
    {"queue",
     "CUDA: a leased element whose consumer is dead",
     {{"cuda.leased.again", 2}, {"cuda.popped.lost", 0}},
     {{"cuda.leased.again", 0}}},
    {"work",
     "CUDA: an index that kernels count up",
     {{"cuda.naive.killed", 2}, {"cuda.naive.missing", 16}},
     {{"cuda.naive.missing", 0}},
     1},
    {"work",
     "CUDA: kernels that claim from a space's work queue",
     {{"cuda.held.killed", 2}, {"cuda.held.once", 200}, {"cuda.held.again", 16}},
     {{"cuda.held.once", 199}}},
    {"work",
     "CUDA: a task that kills its worker",
     {{"cuda.poison.deaths", 3}, {"cuda.poison.letters", 1}},
     {{"cuda.poison.deaths", 5}}},
    {"work", "an index that everybody counts up", {{"naive.missing", 2}}, {{"naive.missing", 0}}, 1},
    {"work", "a work queue of a space", {{"held.once", 200}, {"held.killed", 2}}, {{"held.once", 199}}},
    {"work",
     "a task that kills its worker",
     {{"poison.deaths", 3}, {"poison.letters", 1}},
     {{"poison.letters", 0}}},
    {"pool",
     "a bitmap in shared memory",
     {{"naive.served", 16}, {"naive.left", 0}},
     {{"naive.served", 20}},
     1},
    {"pool", "a pool of a space", {{"held.served", 20}, {"held.free", 16}}, {{"held.free", 15}}},
    {"pool", "a block that changes hands", {{"given.whole", 1}}, {{"given.whole", 0}}},
    {"semaphore", "a counter whose holder is dead", {{"naive.again", 0}}, {{"naive.again", 1}}, 1},
    {"semaphore",
     "turns of four processes",
     {{"turns.well", 1}, {"turns.count", 2000}},
     {{"turns.count", 1999}}},
    {"semaphore",
     "a permit of a space whose holder is dead",
     {{"killed.again", 1}, {"killed.free", 1}},
     {{"killed.again", 0}}},
    {"handles",
     "CUDA: the textbook's file, its maker killed before fclose()",
     {{"cuda.textbook.bytes", 0}, {"cuda.textbook.code", 1}},
     {{"cuda.textbook.code", 0}},
     2},
    {"handles",
     "CUDA: a handle with one byte altered",
     {{"cuda.altered.refused", 40},
      {"cuda.altered.same", 24},
      {"cuda.altered.other", 0},
      {"cuda.altered.after", 1}},
     {{"cuda.altered.other", 1}},
     1},
    {"handles",
     "CUDA: opened in the namespaces of a container",
     {{"cuda.ipc.whole", 1}, {"cuda.pid.whole", 1}, {"cuda.net.whole", 1}, {"cuda.container.whole", 1}},
     {{"cuda.pid.whole", 0}, {"cuda.pid.code", 201}},
     2},
    {"handles",
     "CUDA: exported in a container",
     {{"cuda.from_container.whole", 1}, {"cuda.two_containers.whole", 1}},
     {{"cuda.from_container.whole", 0}},
     2},
    {"handles",
     "CUDA: opened under another host name and boot id",
     {{"cuda.boot.whole", 1}},
     {{"cuda.boot.whole", 0}, {"cuda.boot.code", 400}},
     1},
    {"handles", "CUDA: opened at home", {{"cuda.home.open", 201}}, {{"cuda.home.open", 0}}, 1},
    {"handles",
     "CUDA: a file with the handle of a dead exporter",
     {{"cuda.file.whole", 1}, {"cuda.stale.code", 400}, {"cuda.mapped.works", 1}},
     {{"cuda.stale.code", 0}}},
    {"handles", "CUDA: a descriptor whose maker is dead", {{"cuda.vmm.whole", 1}}, {{"cuda.vmm.whole", 0}}},
    {"events",
     "CUDA: an event that nobody has recorded",
     {{"cuda.unrecorded.code", 0}, {"cuda.early.whole", 0}},
     {{"cuda.unrecorded.code", 600}},
     1},
    {"events",
     "CUDA: the recorder is killed in mid-work",
     {{"cuda.dead.code", 600}},
     {{"cuda.dead.code", 700}},
     2},
    {"events",
     "CUDA: the textbook's ready and event, its producer killed behind ready",
     {{"cuda.textbook.code", 0}, {"cuda.textbook.whole", 0}},
     {{"cuda.textbook.whole", 1}}},
    {"events", "CUDA: a stream that waits for a word", {{"cuda.word.saved", 1}}, {{"cuda.word.saved", 0}}},
    {"bandwidth",
     "CUDA: imported against local",
     {{"cuda.legacy.ratio", 1}, {"cuda.vmm.ratio", 1}},
     {{"cuda.legacy.ratio", 0.5}},
     1},
    {"bandwidth",
     "CUDA: the exporter is killed while it is read",
     {{"cuda.killed.ratio", 1}},
     {{"cuda.killed.ratio", 0.1}}},
    {"handles",
     "every road carries it",
     {{"sysv.works", 1}, {"file.works", 1}, {"socket.works", 1}, {"fork.works", 1}},
     {{"file.works", 0}}},
    {"handles",
     "a whole handle whose maker is dead",
     {{"file.left", 1}, {"stale.opens", 0}},
     {{"stale.opens", 1}},
     1},
    {"handles",
     "a descriptor whose maker is dead",
     {{"rights.works", 1}, {"mapped.works", 1}},
     {{"rights.works", 0}}},
    {"handles",
     "the textbook's file, its maker killed before fclose()",
     {{"textbook.bytes", 0}, {"textbook.opens", 0}},
     {{"textbook.opens", 1}}},
    {"events",
     "ready is set, then the work begins",
     {{"early.wrong", 50}, {"early.tries", 50}},
     {{"early.wrong", 0}},
     1},
    {"events", "the work, then ready", {{"late.wrong", 0}, {"late.tries", 50}}, {{"late.wrong", 1}}},
    {"events", "a signal whose sender is dead", {{"hang.released", 0}}, {{"hang.released", 1}}, 1},
    {"events",
     "the textbook's flag, its producer killed behind it",
     {{"textbook.ready", 1}, {"textbook.whole", 0}},
     {{"textbook.whole", 1}}},
    {"events", "a word that a third one may write", {{"word.saved", 1}, {"word.us", 90}}, {{"word.us", 2e6}}},
    {"order", "the maker is killed behind shm_open()", {{"unsized.signal", 7}}, {{"unsized.signal", 0}}, 2},
    {"order", "the maker is killed behind ftruncate()", {{"unset.code", 5}}, {{"unset.code", 0}}},
    {"order",
     "either first, by a space",
     {{"consumer_first.got", 1}, {"producer_first.got", 1}},
     {{"consumer_first.got", 0}}},
    {"order", "nobody holds the space", {{"nobody.names_it", 1}, {"nobody.ms", 300}}, {{"nobody.ms", 9000}}},
    {"bandwidth", "reading", {{"read.ratio", 1.0}}, {{"read.ratio", 0.4}}, 1},
    {"bandwidth", "a chase of pointers", {{"chase.ratio", 1.0}}, {{"chase.ratio", 100}}},
    {"bandwidth", "the maker is killed while it is read", {{"killed.ratio", 1.0}}, {{"killed.ratio", 0.01}}},
    {"coherence", "a plain load in a loop", {{"plain.sees", 0}}, {{"plain.sees", 1}}, 2},
    {"coherence", "a volatile load in a loop", {{"volatile.sees", 1}}, {{"volatile.sees", 0}}},
    {"coherence", "data beside a flag of release and acquire", {{"acquire.torn", 0}}, {{"acquire.torn", 1}}},
    {"coherence",
     "each writes its own word and reads the other's",
     {{"weak.both_zero", 9}, {"seq_cst.both_zero", 0}},
     {{"seq_cst.both_zero", 1}}},
    {"coherence",
     "the writer is killed",
     {{"killed.poller_ends", 0}, {"killed.saved", 1}},
     {{"killed.poller_ends", 1}}},
};

claim_verdict told(const contrary& c, std::map<std::string, f64> values) {
    for (const auto& [name, value] : c.change) values.insert({name, value});
    figures f;
    f.values = std::move(values);
    const lesson& l = lesson_from(c.lesson);
    const auto at = std::find_if(l.claims.begin(), l.claims.end(),
                                 [&](const claim& one) { return std::strcmp(one.name, c.claim) == 0; });
    REQUIRE(at != l.claims.end());
    return judge(*at, f);
}

}  // namespace

TEST_CASE("contrary figures make a lesson fail, or choose the other explanation") {
    for (const contrary& c : all_contraries) {
        CAPTURE(c.lesson, c.claim);
        const claim_verdict usual = told(c, c.usual);
        CHECK(usual.what == outcome::explained);
        CHECK(usual.row == 0);
        auto values = c.change;  // insert() above keeps what is there: the change counts
        values.insert(c.usual.begin(), c.usual.end());
        const claim_verdict other = told(c, values);
        if (c.row == fails) {
            CHECK(other.what == outcome::unexplained);
        } else {
            CHECK(other.what == outcome::explained);
            CHECK(other.row == c.row);
        }
    }
}

TEST_CASE("each lesson has a set of contrary figures, and its deciding claim has answers") {
    for (const lesson* l : all_lessons()) {
        CAPTURE(l->name);
        CHECK(std::any_of(std::begin(all_contraries), std::end(all_contraries),
                          [&](const contrary& c) { return std::strcmp(c.lesson, l->name) == 0; }));
        const auto decides = std::find_if(l->claims.begin(), l->claims.end(), [&](const claim& c) {
            return std::strcmp(c.name, l->decided_by) == 0;
        });
        REQUIRE(decides != l->claims.end());
        for (const explanation_row& row : decides->rows) {
            CHECK(row.answer >= 0);
            CHECK(row.answer < static_cast<int>(l->answers.size()));
        }
    }
}

TEST_CASE("no claim is explained by no figures, and each row asks for some") {
    for (const lesson* l : all_lessons())
        for (const claim& c : l->claims) {
            CAPTURE(l->name, c.name);
            CHECK(judge(c, figures{}).what == outcome::unexplained);
            for (const explanation_row& row : c.rows) CHECK_FALSE(row.when.empty());
        }
}

TEST_CASE("where there is no GPU, no second one or no MPS, its claims say so, and the others are judged") {
    for (const char* need : {"gpu", "two_gpus", "mps"}) {
        figures f;
        f.missing[need] = std::string("none here: ") + need;
        u32 told = 0;
        for (const lesson* l : all_lessons())
            for (const claim_verdict& v : judge(*l, f)) {
                CAPTURE(l->name, v.about->name);
                const bool needs = std::strcmp(v.about->needs, need) == 0;
                CHECK((v.what == outcome::not_here) == needs);
                if (needs) CHECK(v.text == f.missing[need]);
                told += needs;
            }
        CHECK(told > 0);
    }
}

TEST_CASE("a claim whose need is missing says why, and fails nothing") {
    figures f;
    f.missing["shm"] = "no POSIX shared memory here: No such file or directory";
    const lesson& l = lesson_from("order");
    for (const claim_verdict& v : judge(l, f))
        if (std::strcmp(v.about->needs, "shm") == 0) {
            CHECK(v.what == outcome::not_here);
            CHECK(v.text == f.missing["shm"]);
        }
    CHECK_FALSE(right_answer(l, judge(l, f)));
}
