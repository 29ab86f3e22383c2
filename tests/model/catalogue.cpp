#include "catalogue.hpp"

namespace carousel::model {

const std::vector<entry>& catalogue() {
    static const std::vector<entry> all = [] {
        std::vector<entry> out = holding_entries();
        for (auto part :
             {failing_entries(), sizing_entries(), pipeline_entries(), output_entries(), damage_entries()})
            for (entry& e : part) out.push_back(std::move(e));
        return out;
    }();
    return all;
}

const entry* find_entry(std::string_view name) {
    for (const entry& e : catalogue())
        if (e.name == name) return &e;
    return nullptr;
}

}  // namespace carousel::model
