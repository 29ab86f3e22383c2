#include "scan_source.hpp"

int main(int argc, char** argv) { return carousel::stage_main<scan_source>(argc, argv); }
