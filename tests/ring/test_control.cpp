// Histories of the real ring code (simulation.hpp) with one seeded bug compiled in must show the bug. Linked
// with each bugged ring in turn.

#include "simulation.hpp"
#include "tests/support/catch.hpp"

using carousel::u64;
using carousel::test::simulate;
using carousel::test::simulation_options;
using carousel::test::simulation_result;
using carousel::test::usual_history;

TEST_CASE("control: the seeded bug shows in the same histories") {
    u64 lost = 0, repeated = 0, torn = 0, late = 0, stuck = 0, mixed = 0;
    for (u64 seed = 1; seed <= 1500 && lost + repeated + torn + late + stuck + mixed == 0; ++seed) {
        const simulation_options o = usual_history(seed);
        const simulation_result r = simulate(o);
        lost += r.lost, repeated += r.repeated, torn += r.torn, late += r.late + r.disorder,
            stuck += r.stuck ? 1 : 0, mixed += r.mixed;
    }
    INFO("lost " << lost << " repeated " << repeated << " torn " << torn << " late " << late << " stuck "
                 << stuck << " mixed " << mixed);
    CHECK(lost + repeated + torn + late + stuck + mixed > 0);
}
