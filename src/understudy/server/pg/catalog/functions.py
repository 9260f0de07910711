"""The functions of the catalog, as macros of the desk: `us_format_type` is what `format_type` becomes, and so on."""

from __future__ import annotations

_PRIVILEGES = "regexp_matches(lower({}), '^\\s*select(\\s+with grant option)?\\s*(,|$)')"
_DESCRIPTION = (
    "SELECT max(zd.description) FROM pgc.pg_description zd WHERE zd.objoid = TRY_CAST({} AS UINTEGER)"
)
_CLASS = "(SELECT zr.oid FROM pgc.pg_class zr WHERE zr.relname = {} AND zr.relnamespace = 11)"
_NULL = "NULL::VARCHAR"
_ZERO = "0::BIGINT"
_QUOTED = (
    "CASE WHEN regexp_full_match({0}, '[a-z_][a-z0-9_$]*') AND {0} NOT IN (SELECT zk.word FROM pgc.us_keywords zk "
    "WHERE zk.catcode <> 'U') THEN {0} ELSE '\"' || replace({0}, '\"', '\"\"') || '\"' END"
)
_PLAIN = (
    "CASE WHEN regexp_full_match({0}, '[a-z_][a-z0-9_$]*') THEN {0} "
    "ELSE '\"' || replace({0}, '\"', '\"\"') || '\"' END"
)
_OBJECT = "coalesce((SELECT {} FROM pgc.{} zo WHERE zo.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-' ELSE o::VARCHAR END)"


def _visible(relation: str, schema: str) -> str:
    return (
        f"(SELECT list_contains(s, zn.nspname) FROM pgc.{relation} zv JOIN pgc.pg_namespace zn "
        f"ON zn.oid = zv.{schema} WHERE zv.oid = TRY_CAST(o AS UINTEGER))"
    )


_VISIBLE = {
    "pg_collation_is_visible": ("pg_collation", "collnamespace"),
    "pg_conversion_is_visible": ("pg_conversion", "connamespace"),
    "pg_function_is_visible": ("pg_proc", "pronamespace"),
    "pg_opclass_is_visible": ("pg_opclass", "opcnamespace"),
    "pg_operator_is_visible": ("pg_operator", "oprnamespace"),
    "pg_opfamily_is_visible": ("pg_opfamily", "opfnamespace"),
    "pg_statistics_obj_is_visible": ("pg_statistic_ext", "stxnamespace"),
    "pg_table_is_visible": ("pg_class", "relnamespace"),
    "pg_ts_config_is_visible": ("pg_ts_config", "cfgnamespace"),
    "pg_ts_dict_is_visible": ("pg_ts_dict", "dictnamespace"),
    "pg_ts_parser_is_visible": ("pg_ts_parser", "prsnamespace"),
    "pg_ts_template_is_visible": ("pg_ts_template", "tmplnamespace"),
    "pg_type_is_visible": ("pg_type", "typnamespace"),
}

VISIBLE = frozenset(_VISIBLE)
"""Functions that depend on the search path, which is given to them as a second argument."""

_FORMATTED = "(SELECT zt.name FROM pgc.us_formats zt WHERE zt.oid = TRY_CAST({} AS UINTEGER))"

MACROS: dict[str, list[tuple[str, str]]] = {
    # ---- definitions
    "format_type": [
        (
            "o, m",
            "CASE WHEN o IS NULL THEN NULL WHEN o = 0 THEN '-' ELSE coalesce("
            + _FORMATTED.format("o")
            + " || CASE WHEN m > 4 AND o IN (1042, 1043) THEN '(' || (m - 4)::VARCHAR || ')' ELSE '' END, '???') END",
        )
    ],
    "pg_get_userbyid": [
        ("o", "coalesce((SELECT zo.rolname FROM pgc.pg_roles zo WHERE zo.oid = o::UINTEGER), "
              "'unknown (OID=' || o::VARCHAR || ')')")
    ],
    "pg_get_expr": [("a, b", _NULL), ("a, b, c", _NULL)],
    "pg_get_indexdef": [
        ("o", "(SELECT zi.text FROM pgc.us_indexes zi WHERE zi.oid = TRY_CAST(o AS UINTEGER))"),
        ("o, n, p", "CASE WHEN n = 0 THEN (SELECT zi.text FROM pgc.us_indexes zi WHERE zi.oid = TRY_CAST(o AS "
                    "UINTEGER)) ELSE (SELECT za.attname FROM pgc.pg_index zx JOIN pgc.pg_attribute za ON za.attrelid "
                    "= zx.indrelid AND za.attnum = zx.indkey[n] WHERE zx.indexrelid = TRY_CAST(o AS UINTEGER)) END"),
    ],
    "pg_get_constraintdef": [
        (arguments, "(SELECT zc.text FROM pgc.us_constraints zc WHERE zc.oid = TRY_CAST(o AS UINTEGER))")
        for arguments in ("o", "o, p")
    ],
    "pg_get_function_arguments": [
        ("o", "(SELECT zf.arguments FROM pgc.us_functions zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))")
    ],
    "pg_get_function_identity_arguments": [
        ("o", "(SELECT zf.identity FROM pgc.us_functions zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))")
    ],
    "pg_get_function_result": [
        ("o", "(SELECT zf.result FROM pgc.us_functions zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))")
    ],
    "pg_get_functiondef": [("o", _NULL)],
    "pg_get_function_sqlbody": [("o", _NULL)],
    "pg_get_function_arg_default": [("o, n", _NULL)],
    "pg_get_viewdef": [("o", _NULL), ("o, p", _NULL)],
    "pg_get_ruledef": [("o", _NULL), ("o, p", _NULL)],
    "pg_get_triggerdef": [("o", _NULL), ("o, p", _NULL)],
    "pg_get_partkeydef": [("o", _NULL)],
    "pg_get_partition_constraintdef": [("o", _NULL)],
    "pg_get_serial_sequence": [("a, b", _NULL)],
    "pg_get_statisticsobjdef": [("o", _NULL)],
    "pg_get_statisticsobjdef_columns": [("o", _NULL)],
    "pg_get_replica_identity_index": [("o", "NULL::UINTEGER")],
    # ---- descriptions
    "obj_description": [
        ("o", f"({_DESCRIPTION.format('o')} AND zd.objsubid = 0)"),
        ("o, c", f"({_DESCRIPTION.format('o')} AND zd.objsubid = 0 AND zd.classoid = {_CLASS.format('c')})"),
    ],
    "col_description": [
        ("o, n", f"({_DESCRIPTION.format('o')} AND zd.objsubid = n AND zd.objsubid <> 0 AND zd.classoid = 1259)")
    ],
    "shobj_description": [
        ("o, c", "(SELECT max(zd.description) FROM pgc.pg_shdescription zd WHERE zd.objoid = TRY_CAST(o AS UINTEGER) "
                 f"AND zd.classoid = {_CLASS.format('c')})")
    ],
    # ---- names
    "to_regclass": [
        ("t, s", "(SELECT zc.oid FROM pgc.pg_class zc JOIN pgc.pg_namespace zn ON zn.oid = zc.relnamespace WHERE "
                 "CASE WHEN contains(t, '.') THEN zn.nspname = replace(string_split(t, '.')[1], '\"', '') "
                 "ELSE list_contains(s, zn.nspname) END AND zc.relname = replace(string_split(t, '.')[-1], '\"', '') "
                 "ORDER BY list_position(s, zn.nspname) LIMIT 1)")
    ],
    "to_regtype": [
        ("t", "coalesce((SELECT min(zt.oid) FROM pgc.us_formats zt WHERE zt.name = lower(t)), (SELECT min(zp.oid) "
              "FROM pgc.pg_type zp WHERE zp.typname = replace(string_split(t, '.')[-1], '\"', '')))")
    ],
    "to_regnamespace": [("t", "(SELECT zn.oid FROM pgc.pg_namespace zn WHERE zn.nspname = replace(t, '\"', ''))")],
    "to_regrole": [("t", "(SELECT zo.oid FROM pgc.pg_roles zo WHERE zo.rolname = replace(t, '\"', ''))")],
    "to_regproc": [("t", "(SELECT min(zp.oid) FROM pgc.pg_proc zp WHERE zp.proname = string_split(t, '.')[-1])")],
    "regclass_out": [
        ("o, s", "coalesce((SELECT CASE WHEN list_contains(s, zn.nspname) THEN '' ELSE "
                 + _PLAIN.format("zn.nspname") + " || '.' END || " + _PLAIN.format("zc.relname")
                 + " FROM pgc.pg_class zc JOIN pgc.pg_namespace zn ON zn.oid = zc.relnamespace WHERE zc.oid = "
                 "o::UINTEGER), CASE WHEN o = 0 THEN '-' ELSE o::VARCHAR END)")
    ],
    "regtype_out": [("o", "coalesce(" + _FORMATTED.format("o") + ", CASE WHEN o = 0 THEN '-' ELSE o::VARCHAR END)")],
    "regtypes_out": [
        ("a", "CASE WHEN a IS NOT NULL THEN coalesce((SELECT list(zt.name ORDER BY zu.i) FROM (SELECT unnest(a) AS o, "
              "generate_subscripts(a, 1) AS i) zu JOIN pgc.us_formats zt ON zt.oid = zu.o), []::VARCHAR[]) END")
    ],
    "regproc_out": [
        ("o", "coalesce((SELECT CASE WHEN (SELECT count(*) FROM pgc.pg_proc zq WHERE zq.proname = zp.proname) > 1 "
              "THEN 'pg_catalog.' ELSE '' END || zp.proname FROM pgc.pg_proc zp WHERE zp.oid = o::UINTEGER), "
              "CASE WHEN o = 0 THEN '-' ELSE o::VARCHAR END)")
    ],
    "regprocedure_out": [
        ("o", "coalesce((SELECT zp.proname || '(' || replace(zf.identity, ', ', ',') || ')' FROM pgc.pg_proc zp JOIN "
              "pgc.us_functions zf ON zf.oid = zp.oid WHERE zp.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-' ELSE "
              "o::VARCHAR END)")
    ],
    "regnamespace_out": [("o", _OBJECT.format(_PLAIN.format("zo.nspname"), "pg_namespace"))],
    "regrole_out": [("o", _OBJECT.format(_PLAIN.format("zo.rolname"), "pg_roles"))],
    "regoper_out": [("o", _OBJECT.format("zo.oprname", "pg_operator"))],
    "regcollation_out": [("o", _OBJECT.format(_PLAIN.format("zo.collname"), "pg_collation"))],
    "regconfig_out": [("o", _OBJECT.format("zo.cfgname", "pg_ts_config"))],
    "regdictionary_out": [("o", _OBJECT.format("zo.dictname", "pg_ts_dict"))],
    "quote_ident": [("a", _QUOTED.format("a"))],
    "quote_literal": [("a", "'''' || replace(a::VARCHAR, '''', '''''') || ''''")],
    "quote_nullable": [("a", "coalesce('''' || replace(a::VARCHAR, '''', '''''') || '''', 'NULL')")],
    "parse_ident": [("a", "list_transform(string_split(a, '.'), lambda p: CASE WHEN starts_with(p, '\"') THEN "
                          "replace(p, '\"', '') ELSE lower(p) END)")],
    "pg_encoding_to_char": [("e", "CASE e WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END")],
    "pg_char_to_encoding": [("e", "CASE upper(e) WHEN 'UTF8' THEN 6 WHEN 'SQL_ASCII' THEN 0 ELSE -1 END")],
    "pg_typeof": [("a", _NULL)],
    # ---- privileges: everybody may read, and nobody may write
    **{
        f"has_{what}_privilege": [("a, p", _PRIVILEGES.format("p")), ("u, a, p", _PRIVILEGES.format("p"))]
        for what in ("table", "any_column")
    },
    "has_column_privilege": [("a, c, p", _PRIVILEGES.format("p")), ("u, a, c, p", _PRIVILEGES.format("p"))],
    "has_schema_privilege": [("a, p", "(lower(p) LIKE '%usage%')"), ("u, a, p", "(lower(p) LIKE '%usage%')")],
    "has_database_privilege": [
        ("a, p", "regexp_matches(lower(p), 'connect|temp')"),
        ("u, a, p", "regexp_matches(lower(p), 'connect|temp')"),
    ],
    "has_function_privilege": [("a, p", "true"), ("u, a, p", "true")],
    "has_language_privilege": [("a, p", "true"), ("u, a, p", "true")],
    "has_type_privilege": [("a, p", "true"), ("u, a, p", "true")],
    "has_sequence_privilege": [("a, p", "false"), ("u, a, p", "false")],
    "has_tablespace_privilege": [("a, p", "false"), ("u, a, p", "false")],
    "has_server_privilege": [("a, p", "false"), ("u, a, p", "false")],
    "has_foreign_data_wrapper_privilege": [("a, p", "false"), ("u, a, p", "false")],
    "has_parameter_privilege": [("a, p", "false"), ("u, a, p", "false")],
    "pg_has_role": [("a, p", "false"), ("u, a, p", "false")],
    "row_security_active": [("a", "false")],
    # ---- the server: nothing is told about other sessions, sizes or times
    "pg_is_in_recovery": [("", "false")],
    "pg_is_wal_replay_paused": [("", "false")],
    "pg_backend_pid": [("", "1")],
    "pg_my_temp_schema": [("", "0::UINTEGER")],
    "pg_is_other_temp_schema": [("o", "false")],
    "pg_relation_is_publishable": [("o", "false")],
    "pg_relation_is_updatable": [("o, p", "0")],
    "pg_column_is_updatable": [("o, n, p", "false")],
    "pg_tablespace_location": [("o", "''")],
    "pg_tablespace_size": [("o", _ZERO)],
    "pg_total_relation_size": [("o", _ZERO)],
    "pg_relation_size": [("o", _ZERO), ("o, f", _ZERO)],
    "pg_table_size": [("o", _ZERO)],
    "pg_indexes_size": [("o", _ZERO)],
    "pg_database_size": [("o", _ZERO)],
    "pg_relation_filenode": [("o", "NULL::UINTEGER")],
    "pg_relation_filepath": [("o", _NULL)],
    "pg_sequence_last_value": [("o", "NULL::BIGINT")],
    "pg_size_pretty": [("n", "n::BIGINT::VARCHAR || ' bytes'")],
    "pg_stat_get_numscans": [("o", _ZERO)],
    "pg_stat_get_live_tuples": [("o", _ZERO)],
    "pg_stat_get_tuples_inserted": [("o", _ZERO)],
    "pg_stat_get_last_analyze_time": [("o", _NULL)],
    "pg_stat_get_last_autoanalyze_time": [("o", _NULL)],
    "pg_stat_get_last_vacuum_time": [("o", _NULL)],
    "pg_stat_get_last_autovacuum_time": [("o", _NULL)],
    "pg_postmaster_start_time": [("", _NULL)],
    "pg_conf_load_time": [("", _NULL)],
    "pg_current_wal_lsn": [("", _NULL)],
    "pg_last_wal_receive_lsn": [("", _NULL)],
    "pg_last_wal_replay_lsn": [("", _NULL)],
    "pg_last_xact_replay_timestamp": [("", _NULL)],
    "pg_blocking_pids": [("p", "[]::INTEGER[]")],
    "pg_advisory_unlock_all": [("", _NULL)],
    "pg_jit_available": [("", "false")],
    "pg_collation_actual_version": [("o", _NULL)],
    "pg_collation_for": [("a", _NULL)],
    "pg_database_collation_actual_version": [("o", _NULL)],
    "pg_listening_channels": [("", _NULL)],
    "txid_current": [("", "716::BIGINT")],
    "txid_current_if_assigned": [("", "NULL::BIGINT")],
    "pg_current_xact_id": [("", "716::BIGINT")],
    "pg_snapshot_xmin": [("a", "716::BIGINT")],
    "inet_server_addr": [("", _NULL)],
    "inet_server_port": [("", "NULL::INTEGER")],
    "inet_client_addr": [("", _NULL)],
    "inet_client_port": [("", "NULL::INTEGER")],
    "getdatabaseencoding": [("", "'UTF8'")],
    "pg_client_encoding": [("", "'UTF8'")],
    "age": [("x", "0::INTEGER")],
    "mxid_age": [("x", "0::INTEGER")],
    "setting_of": [("n", "(SELECT max(zs.setting) FROM pgc.pg_settings zs WHERE lower(zs.name) = lower(n))")],
    # ---- arrays
    "array_upper": [("a, n", "CASE WHEN n = 1 THEN nullif(len(a), 0)::INTEGER END")],
    "array_lower": [("a, n", "CASE WHEN n = 1 AND len(a) > 0 THEN 1 END")],
    "array_length": [("a, n", "CASE WHEN n = 1 THEN nullif(len(a), 0)::INTEGER END")],
    "array_ndims": [("a", "CASE WHEN len(a) > 0 THEN 1 END")],
    "array_position": [("a, b", "list_position(a, b)")],
    "array_remove": [("a, b", "list_filter(a, lambda p: p IS DISTINCT FROM b)")],
    "array_out": [
        ("a", "CASE WHEN a IS NULL THEN NULL ELSE '{' || coalesce(array_to_string(list_transform(a, lambda p: CASE "
              "WHEN p IS NULL THEN 'NULL' WHEN p = '' OR regexp_matches(p, '[{},\"\\s\\\\]') OR upper(p) = 'NULL' "
              "THEN '\"' || replace(replace(p, '\\', '\\\\'), '\"', '\\\"') || '\"' ELSE p END), ','), '') || '}' END")
    ],
    "generate_subscripts": [("a, n", "unnest(range(1, len(a) + 1))::INTEGER")],
    "_pg_expandarray": [
        ("a", "unnest(list_transform(range(1, len(a) + 1), lambda p: {'x': a[p], 'n': p::INTEGER}))")
    ],
    "_pg_truetypid": [("a, t", "NULL::UINTEGER")],
    "string_to_array": [("a, b", "CASE WHEN a = '' THEN []::VARCHAR[] ELSE string_split(a, b) END")],
    "btrim": [("a", "trim(a)"), ("a, b", "trim(a, b)")],
    "acldefault": [("k, o", "NULL::VARCHAR[]")],
    "pg_get_acl": [("a, b, c", "NULL::VARCHAR[]")],
    "pg_notify": [("a, b", _NULL)],
    "pg_sleep": [("a", _NULL)],
    "pg_cancel_backend": [("p", "false")],
    "pg_terminate_backend": [("p", "false"), ("p, t", "false")],
}  # fmt: skip
"""By the name of a function of Postgres, its forms: the parameters of each, and what it stands for."""

ALWAYS_NULL_SETS = {
    "aclexplode": "SELECT a.grantor, a.grantee, a.privilege_type, a.is_grantable FROM pgc.us_class_acl a WHERE false",
    "pg_options_to_table": "SELECT NULL::VARCHAR AS option_name, NULL::VARCHAR AS option_value WHERE false",
    "pg_partition_tree": "SELECT 0::UINTEGER AS relid, 0::UINTEGER AS parentrelid, true AS isleaf, 0 AS level WHERE false",
    "pg_partition_ancestors": "SELECT 0::UINTEGER AS relid WHERE false",
    "pg_get_publication_tables": "SELECT 0::UINTEGER AS relid, NULL::VARCHAR AS attrs, NULL::VARCHAR AS qual WHERE false",
    "pg_stat_get_activity": "SELECT 0::UINTEGER AS datid, 0 AS pid, 0::UINTEGER AS usesysid WHERE false",
    "pg_available_extensions": "SELECT '' AS name, '' AS default_version, '' AS comment WHERE false",
    "pg_available_extension_versions": "SELECT '' AS name, '' AS version WHERE false",
    "pg_get_keywords": "SELECT * FROM pgc.us_keywords",
    "pg_show_all_settings": "SELECT * FROM pgc.pg_settings",
}
"""Functions that stand after FROM, and what they select; most have nothing to tell about a served table."""


def statements() -> list[str]:
    """What makes the macros."""
    made = []
    for name, forms in MACROS.items():
        made.append(
            f"CREATE MACRO us_{name} "
            + ", ".join(f"({parameters}) AS ({body})" for parameters, body in forms)
        )
    for name, (relation, schema) in _VISIBLE.items():
        made.append(f"CREATE MACRO us_{name}(o, s) AS {_visible(relation, schema)}")
    return made
