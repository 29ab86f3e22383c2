#include "negative.hpp"

int main(int argc, char** argv) { return carousel::stage_main<negative_stage>(argc, argv); }
