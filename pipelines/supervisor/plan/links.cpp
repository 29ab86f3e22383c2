#include "supervisor/plan/links.hpp"

#include "supervisor/plan/memory_plan.hpp"

namespace carousel::supervisor {

std::vector<run::ps_link> links_of(const run_setup& s) {
    const ring::plan plan = plan_of(s);
    std::vector<run::ps_link> links;
    const std::vector<ring_place> rings = s.rings();
    for (const memory_item& m : plan_memory(s)) {
        if (m.asset) continue;
        const auto [k, output] = rings.at(m.index);
        const ring_setup& of = s.stages[k].ring(output);
        run::ps_link l;
        l.stage = s.stages[k].ring_name(output);
        l.format = of.format.value("type", "?");
        l.memory = device::name_of(m.choice.kind);
        l.slots = ring::derived_slots(plan, k, output);
        l.window = ring::derived_window(plan, k, output);
        l.slot_bytes = of.slot_bytes;
        l.guard = m.guard.name();
        l.output = of.output;
        for (const stage_setup& r : s.stages)
            if (r.reads(k, output))
                l.readers.push_back({r.spec.name, word_of(group_words, r.spec.group), r.spec.is_port()});
        for (const stage_setup& r : s.stages)
            if (r.samples(k, output))
                l.readers.push_back({r.spec.name, word_of(group_words, group_kind::latest)});
        links.push_back(std::move(l));
    }
    return links;
}

}  // namespace carousel::supervisor
